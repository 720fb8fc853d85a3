// Sends UDP datagrams by a plan from this network namespace, and notes what arrives in another one.
//
//   load NAMESPACE INTERFACE < PLAN
//
// A line of the plan is one datagram, numbered from 0: AT FLOW BYTES TOS RATE TXTIME
//   AT      nanoseconds after the beginning; a datagram whose moment has passed is sent at once
//   FLOW    0 to 255: the socket, port 5000 + FLOW, and the sender's address, 10.9.(FLOW / 64).1
//   BYTES   on the link, 14 of Ethernet included: at least 54
//   TOS     the byte of DSCP and ECN
//   RATE    SO_MAX_PACING_RATE in bytes per second, from here on; 0 leaves it as it is; of a segment its flags
//   TXTIME  SCM_TXTIME: nanoseconds after it is sent; -1 for none
// Flows from 192 on are of TCP: each segment acknowledges 1000 bytes more than the one of its flow before, or as
// many if its flags are 0, and has data behind its first 54 bytes.
// Writes "s NANOSECONDS" for each that is sent, and "r NUMBER NANOSECONDS TOS DAMAGED" for each that arrives,
// both since the beginning, by one clock. Datagrams have no checksum of their own, so that every flipped bit
// is seen.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_TCP = 192, FLOWS = 256, PACKETS = 100000, PORT = 7000, FIRST_PORT = 5000, HEADERS = 42, WAIT_SECONDS = 30 };

struct planned {
    long long at, txtime;
    unsigned flow, bytes, tos, rate;
};

static struct planned plan[PACKETS];
static long long sent[PACKETS];
static const unsigned char mac_there[6] = {2, 0, 0, 0, 0, 2}, mac_here[6] = {2, 0, 0, 0, 0, 1};

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static long long now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void set(int socket, int level, int name, long long value, size_t bytes) {
    if (setsockopt(socket, level, name, &value, bytes)) fail("setsockopt");
}

static int receiver(const char *interface) {
    int sock = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    at.sll_ifindex = if_nametoindex(interface);
    if (sock < 0 || !at.sll_ifindex || bind(sock, (void *)&at, sizeof at)) fail(interface);
    set(sock, SOL_SOCKET, SO_RCVBUFFORCE, 512 << 20, 4);
    set(sock, SOL_SOCKET, SO_TIMESTAMPNS, 1, 4);
    // Somebody has to be there, or each datagram is answered with an error.
    int sink = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (bind(sink, (void *)&address, sizeof address)) fail("bind");
    set(sink, SOL_SOCKET, SO_RCVBUF, 1, 4);
    return sock;
}

/// A segment from port 5000 + FLOW to port 7000, whose number is its sequence number; returns its bytes.
static unsigned segment(unsigned char *ip, const struct planned *one, unsigned number) {
    static unsigned acknowledged[FLOWS];
    unsigned bytes = one->bytes - 14, flow = one->flow, sum = 0;
    acknowledged[flow] += one->rate ? 1000 : 0;
    unsigned char head[40] = {69, one->tos, bytes >> 8, bytes, 0, 0, 64, 0, 64, 6, 0, 0, 10, 9, flow / 64, 1, 10, 9, 0, 2};
    unsigned words[3] = {(FIRST_PORT + flow) << 16 | PORT, number, acknowledged[flow]};
    for (int i = 0; i < 12; i++) head[20 + i] = words[i / 4] >> (24 - i % 4 * 8);
    head[32] = 5 << 4;
    head[33] = one->rate ? one->rate : 0x10;
    for (int i = 0; i < 20; i += 2) sum += head[i] << 8 | head[i + 1];
    sum = ~((sum & 0xffff) + (sum >> 16));
    head[10] = sum >> 8;
    head[11] = sum;
    memcpy(ip, head, sizeof head);
    return bytes;
}

static int sender(unsigned flow) {
    if (flow >= FIRST_TCP) {
        int raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
        struct sockaddr_in there = {.sin_family = AF_INET};
        inet_pton(AF_INET, "10.9.0.2", &there.sin_addr);
        if (raw < 0 || connect(raw, (void *)&there, sizeof there)) fail("raw");
        set(raw, SOL_SOCKET, SO_SNDBUFFORCE, 512 << 20, 4);
        return raw;
    }
    int sock = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(FIRST_PORT + flow)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    from.sin_addr.s_addr = htonl(0x0a090001 + (flow / 64 << 8));
    inet_pton(AF_INET, "10.9.0.2", &to.sin_addr);
    if (sock < 0 || bind(sock, (void *)&from, sizeof from)) fail("bind");
    if (connect(sock, (void *)&to, sizeof to)) fail("connect");
    set(sock, SOL_SOCKET, SO_SNDBUFFORCE, 512 << 20, 4);
    set(sock, SOL_SOCKET, SO_NO_CHECK, 1, 4);
    struct sock_txtime txtime = {.clockid = CLOCK_MONOTONIC};
    if (setsockopt(sock, SOL_SOCKET, SO_TXTIME, &txtime, sizeof txtime)) fail("SO_TXTIME");
    return sock;
}

static void send_one(int sock, unsigned number) {
    static char payload[65536];
    const struct planned *one = &plan[number];
    unsigned inverse = ~number;
    memcpy(payload, &number, 4);
    memcpy(payload + 4, &inverse, 4);
    struct iovec data = {payload, one->bytes - HEADERS};
    if (one->flow >= FIRST_TCP) {
        static unsigned char ip[65536];
        unsigned bytes = segment(ip, one, number);
        sent[number] = now(CLOCK_REALTIME);
        if (send(sock, ip, bytes, 0) < 0 && errno != ENOBUFS) fail("segment");
        return;
    }
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(8)] = {0};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (one->txtime >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_TXTIME;
        head->cmsg_len = CMSG_LEN(8);
        long long moment = now(CLOCK_MONOTONIC) + one->txtime;
        memcpy(CMSG_DATA(head), &moment, 8);
    }
    sent[number] = now(CLOCK_REALTIME);
    // An error may be that of a datagram before, which was damaged; it is told once.
    if (sendmsg(sock, &message, 0) < 0 && errno != ENOBUFS) sendmsg(sock, &message, 0);
}

static int is_damaged(const unsigned char *frame, ssize_t bytes) {
    static const char zeros[65536];
    unsigned number, inverse, sum = 0;
    if (bytes < HEADERS + 8 || memcmp(frame, mac_there, 6) || memcmp(frame + 6, mac_here, 6)) return 1;
    if (frame[12] != 8 || frame[13] != 0) return 1;
    for (int i = 14; i < 34; i += 2) sum += frame[i] << 8 | frame[i + 1];
    if (((sum & 0xffff) + (sum >> 16)) != 0xffff) return 1;
    memcpy(&number, frame + HEADERS, 4);
    memcpy(&inverse, frame + HEADERS + 4, 4);
    if (number != ~inverse || number >= PACKETS || bytes != plan[number].bytes) return 1;
    unsigned udp[4] = {FIRST_PORT + plan[number].flow, PORT, bytes - 34, 0};
    for (int i = 0; i < 4; i++)
        if ((unsigned)(frame[34 + 2 * i] << 8 | frame[35 + 2 * i]) != udp[i]) return 1;
    return memcmp(frame + HEADERS + 8, zeros, bytes - HEADERS - 8) != 0;
}

/// The next datagram that came from the other end; false if there was none for a while.
static int take(int sock, long long base) {
    static unsigned char frame[65536];
    _Alignas(struct cmsghdr) char control[256];
    struct sockaddr_ll from;
    struct iovec data = {frame, sizeof frame};
    struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &data, .msg_iovlen = 1};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t bytes = recvmsg(sock, &message, MSG_DONTWAIT);
    if (bytes < 0) return 0;
    if (from.sll_pkttype == PACKET_OUTGOING) return 1;
    struct timespec at = {0, 0};
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head))
        if (head->cmsg_type == SCM_TIMESTAMPNS) memcpy(&at, CMSG_DATA(head), sizeof at);
    unsigned number;
    int is_tcp = frame[23] == IPPROTO_TCP;
    memcpy(&number, frame + (is_tcp ? 38 : HEADERS), 4);
    if (is_tcp) number = ntohl(number);
    printf("r %u %lld %u %d\n", number, at.tv_sec * 1000000000LL + at.tv_nsec - base, frame[15],
           !is_tcp && is_damaged(frame, bytes));
    return 1;
}

int main(int argc, char **argv) {
    int home = open("/proc/self/ns/net", O_RDONLY), there = argc == 3 ? open(argv[1], O_RDONLY) : -1;
    if (there < 0 || setns(there, CLONE_NEWNET)) fail("load NAMESPACE INTERFACE < PLAN");
    int in = receiver(argv[2]), flows[FLOWS] = {0};
    if (setns(home, CLONE_NEWNET)) fail("setns");
    prctl(PR_SET_TIMERSLACK, 1);
    unsigned count = 0, rates[FLOWS] = {0}, classes[FLOWS] = {0};
    for (struct planned *p = plan; count < PACKETS; p++, count++)
        if (scanf("%lld %u %u %u %u %lld", &p->at, &p->flow, &p->bytes, &p->tos, &p->rate, &p->txtime) != 6) break;
    for (unsigned i = 0; i < count; i++)
        if (!flows[plan[i].flow]) flows[plan[i].flow] = sender(plan[i].flow);
    long long begin = now(CLOCK_MONOTONIC) + 100000000;
    long long base = begin + now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < count; i++) {
        const struct planned *one = &plan[i];
        int sock = flows[one->flow];
        if (one->flow < FIRST_TCP && one->tos != classes[one->flow])
            set(sock, IPPROTO_IP, IP_TOS, classes[one->flow] = one->tos, 4);
        if (one->flow < FIRST_TCP && one->rate && one->rate != rates[one->flow])
            set(sock, SOL_SOCKET, SO_MAX_PACING_RATE, rates[one->flow] = one->rate, 4);
        long long at = begin + one->at;
        struct timespec moment = {at / 1000000000, at % 1000000000};
        if (at > now(CLOCK_MONOTONIC)) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL);
        send_one(sock, i);
    }
    // Until all that is queued has left.
    sleep(WAIT_SECONDS);
    for (unsigned i = 0; i < count; i++) printf("s %lld\n", sent[i] - base);
    while (take(in, base)) {}
    return 0;
}
