// Netty's HashedWheelTimer, measured as ../rust/src does it: the same arguments, loads and lines.
//
// Any thread may arm and cancel, and none of them is the timer's own, so place=home is the same as
// place=foreign. Tasks are callbacks that arm again, on a pool of two threads; what only counts or is never
// called stays on the timer's thread. The compiler of the virtual machine needs longer to warm up than
// others, and gets it.

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import io.netty.util.concurrent.ImmediateExecutor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntConsumer;

final class Netty {
    private static final int WORKERS = 2;
    /** Random numbers drawn beforehand, and operations of a stretch. */
    private static final int DRAWN = 4096;
    private static final long MILLIS = 1_000_000;
    /** What passes before and after a window, so that neither start nor end is in it. */
    private static final long MARGIN = 200 * MILLIS;
    private static final TimerTask NEVER = timeout -> { };

    // Sizes; what a measure does not use is 0. Times are in nanoseconds.
    private int threads = 1;
    private int others;
    private int count;
    private long time;
    private long lead;
    private long spread;
    private long period;
    private HashedWheelTimer timer;

    public static void main(String[] arguments) {
        try {
            String reason = new Netty().run(arguments);
            if (reason != null) {
                say("{\"absent\":\"" + reason + "\"}");
            }
        } catch (Exception wrong) {
            System.err.println("error: " + wrong);
            Runtime.getRuntime().halt(1);
        }
        // Threads of the timer and of the pool have nothing to tidy up.
        Runtime.getRuntime().halt(0);
    }

    private String run(String[] arguments) throws Exception {
        for (int at = 1; at < arguments.length; at++) {
            String reason = set(arguments[at]);
            if (reason != null) {
                return reason;
            }
        }
        boolean tasks = List.of("periodic", "sleep", "blocked").contains(arguments[0]);
        Executor executor = tasks ? Executors.newFixedThreadPool(WORKERS) : ImmediateExecutor.INSTANCE;
        timer = new HashedWheelTimer(
                Executors.defaultThreadFactory(), 1, TimeUnit.MILLISECONDS, 512, false, -1, executor);
        timer.start();
        switch (arguments[0]) {
            case "arm-cancel": return armCancel();
            case "remote-cancel": return remoteCancel();
            case "rearm": return rearm();
            case "expire": return expire();
            case "periodic": return periodic();
            case "sleep": return sleep();
            case "blocked": return blocked();
            case "idle": return idle();
            default: throw new IllegalArgumentException("there is no measure " + arguments[0]);
        }
    }

    private String set(String argument) {
        String[] pair = argument.split("=", 2);
        if (pair[0].equals("place")) {
            return null;
        }
        if (pair[0].equals("form")) {
            return pair[1].equals("at") ? "newTimeout takes a delay" : null;
        }
        int number = Integer.parseInt(pair[1]);
        switch (pair[0]) {
            case "threads": threads = number; break;
            case "others": others = number; break;
            case "count": count = number; break;
            case "time_ms": time = number * MILLIS; break;
            case "lead_ms": lead = number * MILLIS; break;
            case "spread_ms": spread = number * MILLIS; break;
            case "period_ms": period = number * MILLIS; break;
            default: throw new IllegalArgumentException("not understood: " + argument);
        }
        return null;
    }

    /** SplitMix64, seeded with the number of the thread; ../rust/src/load.rs names the source. */
    private static final class Delays {
        private long state;

        Delays(int thread) {
            state = thread + 1;
        }

        long below(long bound) {
            state += 0x9e3779b97f4a7c15L;
            long mixed = (state ^ (state >>> 30)) * 0xbf58476d1ce4e5b9L;
            mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
            mixed ^= mixed >>> 31;
            // The high half of an unsigned product, from that of a signed one; bound is positive.
            return Math.multiplyHigh(mixed, bound) + ((mixed >> 63) & bound);
        }

        /** 60 s to an hour, in nanoseconds. */
        long far() {
            return (60_000 + below(3_540_000)) * MILLIS;
        }
    }

    private Timeout arm(TimerTask task, long delay) {
        return timer.newTimeout(task, delay, TimeUnit.NANOSECONDS);
    }

    private Timeout[] pending(int number, Delays delays) {
        Timeout[] timeouts = new Timeout[number];
        for (int at = 0; at < number; at++) {
            timeouts[at] = arm(NEVER, delays.far());
        }
        return timeouts;
    }

    /** Operations: how many in all, and how long each stretch took. */
    private static final class Stretches {
        long operations;
        private final List<Long> lasted = new ArrayList<>();

        void add(int number, long nanos) {
            operations += number;
            lasted.add(nanos);
        }

        /** Per operation of the median stretch: one in which the thread lost its CPU does not count. */
        double nanos() {
            Collections.sort(lasted);
            return (double) lasted.get(lasted.size() / 2) * lasted.size() / operations;
        }
    }

    private static Stretches repeat(long limit, IntConsumer operation) {
        Stretches stretches = new Stretches();
        long start = System.nanoTime();
        for (long last = start; last - start < limit;) {
            for (int at = 0; at < DRAWN; at++) {
                operation.accept(at);
            }
            long now = System.nanoTime();
            stretches.add(DRAWN, now - last);
            last = now;
        }
        return stretches;
    }

    private String armCancel() throws Exception {
        AtomicLong total = new AtomicLong();
        double[] nanos = new double[threads];
        CyclicBarrier start = new CyclicBarrier(threads, () -> say("{\"window\":\"start\"}"));
        CyclicBarrier end = new CyclicBarrier(threads, () -> windowEnd(total.get()));
        Thread[] all = new Thread[threads];
        for (int number = 0; number < threads; number++) {
            int thread = number;
            all[thread] = new Thread(() -> {
                Delays delays = new Delays(thread);
                Timeout[] kept = pending(others / threads, delays);
                long[] drawn = new long[DRAWN];
                for (int at = 0; at < DRAWN; at++) {
                    drawn[at] = delays.far();
                }
                IntConsumer pair = at -> arm(NEVER, drawn[at]).cancel();
                repeat(3 * time, pair);
                await(start);
                Stretches measured = repeat(time, pair);
                total.addAndGet(measured.operations);
                nanos[thread] = measured.nanos();
                await(end);
                java.lang.ref.Reference.reachabilityFence(kept);
            });
            all[thread].start();
        }
        double sum = 0;
        for (int thread = 0; thread < threads; thread++) {
            all[thread].join();
            sum += nanos[thread];
        }
        figure(sum / threads);
        return null;
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (Exception broken) {
            throw new IllegalStateException(broken);
        }
    }

    private String remoteCancel() throws Exception {
        SynchronousQueue<Timeout[]> give = new SynchronousQueue<>();
        SynchronousQueue<Timeout[]> back = new SynchronousQueue<>();
        Thread arms = new Thread(() -> {
            try {
                Delays delays = new Delays(0);
                for (;;) {
                    give.put(pending(count, delays));
                    back.take();
                }
            } catch (InterruptedException over) {
                Thread.currentThread().interrupt();
            }
        });
        arms.setDaemon(true);
        arms.start();
        Stretches measured = null;
        for (long limit : new long[] {3 * time, time}) {
            measured = new Stretches();
            for (long end = System.nanoTime() + limit; System.nanoTime() < end;) {
                Timeout[] batch = give.take();
                long start = System.nanoTime();
                for (Timeout timeout : batch) {
                    timeout.cancel();
                }
                measured.add(batch.length, System.nanoTime() - start);
                back.put(batch);
            }
        }
        figure(measured.nanos());
        return null;
    }

    /** There is no way to move a timeout: cancel, and a new one. */
    private String rearm() {
        Delays delays = new Delays(0);
        Timeout[] timeouts = pending(others, delays);
        IntConsumer one = at -> {
            int which = (int) delays.below(others);
            timeouts[which].cancel();
            timeouts[which] = arm(NEVER, delays.far());
        };
        repeat(3 * time, one);
        figure(repeat(time, one).nanos());
        return null;
    }

    private String expire() throws InterruptedException {
        AtomicLong expired = new AtomicLong();
        TimerTask counts = timeout -> expired.incrementAndGet();
        long first = System.nanoTime() + lead;
        int each = count / threads;
        Thread[] all = new Thread[threads];
        for (int number = 0; number < threads; number++) {
            int thread = number;
            all[thread] = new Thread(() -> {
                Delays delays = new Delays(thread);
                for (int armed = 0; armed < each; armed++) {
                    arm(counts, first + delays.below(spread) - System.nanoTime());
                }
            });
            all[thread].start();
        }
        for (Thread thread : all) {
            thread.join();
        }
        long rest = first - System.nanoTime() - 20 * MILLIS;
        if (rest < 0) {
            return "arming took so long that the first were due";
        }
        sleepFor(rest);
        say("{\"window\":\"start\"}");
        long wanted = (long) each * threads;
        while (expired.get() < wanted) {
            if (System.nanoTime() - first > spread + 20_000 * MILLIS) {
                throw new IllegalStateException("only " + expired.get() + " of " + wanted + " expired");
            }
            sleepFor(20 * MILLIS);
        }
        windowEnd(wanted);
        return null;
    }

    /** A task that sleeps again and again; it is a callback. */
    private abstract class Sleeper implements TimerTask {
        final List<Long> late = new ArrayList<>();
        private final CountDownLatch done;
        private long due;

        Sleeper(CountDownLatch done) {
            this.done = done;
        }

        /** The moment to sleep until after `due`, or 0 if that was all. */
        abstract long next(long due);

        void begin(long first) {
            due = first;
            arm(this, due - System.nanoTime());
        }

        @Override
        public void run(Timeout timeout) {
            late.add((System.nanoTime() - due) / 1000);
            long next = next(due);
            if (next == 0) {
                done.countDown();
            } else {
                begin(next);
            }
        }
    }

    private static void samples(String name, List<? extends Sleeper> sleepers) {
        StringBuilder line = new StringBuilder("{\"samples\":\"" + name + "\",\"us\":[");
        String comma = "";
        for (Sleeper sleeper : sleepers) {
            for (long micros : sleeper.late) {
                line.append(comma).append(micros);
                comma = ",";
            }
        }
        say(line.append("]}").toString());
    }

    private String periodic() throws InterruptedException {
        Delays delays = new Delays(0);
        CountDownLatch done = new CountDownLatch(count);
        List<Sleeper> sleepers = new ArrayList<>();
        long start = System.nanoTime() + MARGIN;
        long end = start + time + 2 * MARGIN;
        for (int task = 0; task < count; task++) {
            Sleeper sleeper = new Sleeper(done) {
                @Override
                long next(long due) {
                    return due + period < end ? due + period : 0;
                }
            };
            sleepers.add(sleeper);
            sleeper.begin(start + delays.below(period));
        }
        sleepFor(2 * MARGIN);
        say("{\"window\":\"start\"}");
        sleepFor(time);
        windowEnd(0);
        done.await();
        samples("lateness", sleepers);
        return null;
    }

    private String sleep() throws InterruptedException {
        CountDownLatch done = new CountDownLatch(1);
        Sleeper sleeper = new Sleeper(done) {
            @Override
            long next(long due) {
                return late.size() < count ? System.nanoTime() + period : 0;
            }
        };
        say("{\"window\":\"start\"}");
        sleeper.begin(System.nanoTime() + period);
        done.await();
        windowEnd(count);
        samples("lateness", List.of(sleeper));
        return null;
    }

    private String blocked() throws InterruptedException {
        naps("calm");
        long end = System.nanoTime() + time;
        arm(new TimerTask() {
            @Override
            public void run(Timeout timeout) {
                if (System.nanoTime() < end) {
                    sleepFor(100 * MILLIS);
                    arm(this, 20 * MILLIS);
                }
            }
        }, 20 * MILLIS);
        naps("blocked");
        return null;
    }

    private void naps(String name) throws InterruptedException {
        CountDownLatch done = new CountDownLatch(count);
        List<Sleeper> sleepers = new ArrayList<>();
        long end = System.nanoTime() + time;
        for (int task = 0; task < count; task++) {
            Delays delays = new Delays(task);
            Sleeper sleeper = new Sleeper(done) {
                @Override
                long next(long due) {
                    long now = System.nanoTime();
                    return now < end ? now + 10 * MILLIS + delays.below(6 * MILLIS) : 0;
                }
            };
            sleepers.add(sleeper);
            sleeper.begin(sleeper.next(0));
        }
        done.await();
        samples(name, sleepers);
    }

    private String idle() {
        sleepFor(MARGIN);
        say("{\"window\":\"start\"}");
        sleepFor(time);
        windowEnd(0);
        return null;
    }

    private static void sleepFor(long nanos) {
        try {
            TimeUnit.NANOSECONDS.sleep(nanos);
        } catch (InterruptedException over) {
            Thread.currentThread().interrupt();
        }
    }

    private static void figure(double value) {
        say("{\"figure\":\"ns\",\"value\":" + value + "}");
    }

    private static void windowEnd(long events) {
        say("{\"window\":\"end\",\"events\":" + events + "}");
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
