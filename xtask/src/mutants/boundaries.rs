//! Mutants of boundaries: who may have an address, a name, a turn, memory or a privilege.

use super::killer::{Killer, Mutant, Suite};

pub(super) const BOUNDARIES: &[Mutant] = &[
    Mutant {
        name: "relay-port-shared-with-all",
        rule: "while its sockets are made, a relay's address is shared with this user's sockets alone",
        file: "crates/net/src/relay/port.rs",
        right: "sockopt::set_socket_reuseport(socket, sharing == Sharing::OfThisUser)",
        wrong: "sockopt::set_socket_reuseaddr(socket, sharing == Sharing::OfThisUser)",
        killers: &[Killer::Test(
            Suite::DeviceUnits,
            "relay::port::tests::another_user_cannot_share_the_address",
        )],
    },
    Mutant {
        name: "relay-port-stays-shared",
        rule: "a relay's address is not shared once its sockets are made",
        file: "crates/net/src/relay/port.rs",
        right: "share(first, Sharing::Nobody)?;",
        wrong: "share(first, Sharing::OfThisUser)?;",
        killers: &[Killer::Test(Suite::DeviceUnits, "relay::port::tests::an_open_port_is_not_shared")],
    },
    Mutant {
        name: "namespace-by-name",
        rule: "a namespace that has our name and is not ours is left alone",
        file: "crates/net/src/tun/namespace.rs",
        right: "Ok(Some(found)) if *found == self",
        wrong: "Ok(Some(found)) if found.device == self.device",
        killers: &[Killer::Test(
            Suite::DeviceUnits,
            "tun::namespace::tests::a_namespace_is_known_by_what_it_is",
        )],
    },
    Mutant {
        name: "program-by-path",
        rule: "a program that is run with privileges is not looked for in PATH",
        file: "crates/net/src/tun/program.rs",
        right: "let mut command = Command::new(path);",
        wrong: "let mut command = Command::new(path.file_name().unwrap_or_default());",
        killers: &[Killer::Test(
            Suite::DeviceUnits,
            "tun::program::tests::the_caller_has_no_part_in_a_program",
        )],
    },
    Mutant {
        name: "program-with-environment",
        rule: "a program that is run with privileges has a clean environment",
        file: "crates/net/src/tun/program.rs",
        right: "command.env_clear().env(",
        wrong: "command.env(",
        killers: &[Killer::Test(
            Suite::DeviceUnits,
            "tun::program::tests::the_caller_has_no_part_in_a_program",
        )],
    },
    Mutant {
        name: "control-first-come",
        rule: "a client that is silent does not keep another one out",
        file: "crates/net/src/instance/control_socket.rs",
        right: "self.clients.remove(at).send_away();",
        wrong: "return client.send_away();",
        killers: &[Killer::Test(
            Suite::DeviceUnits,
            "instance::control_socket::tests::no_client_keeps_others_out",
        )],
    },
    Mutant {
        name: "control-trickle",
        rule: "a request has to arrive in time as a whole",
        file: "crates/net/src/instance/control_socket.rs",
        right: "if !self.conversation.is_begun() {",
        wrong: "if self.conversation.wanted() > 0 {",
        killers: &[Killer::Test(
            Suite::DeviceUnits,
            "instance::control_socket::tests::silence_ends_a_connection",
        )],
    },
    Mutant {
        name: "control-long-line",
        rule: "no more is heard than the longest line",
        file: "crates/net/src/instance/conversation.rs",
        right: "length > REQUEST_MAX",
        wrong: "length > 1 << 30",
        killers: &[Killer::Test(
            Suite::DeviceUnits,
            "instance::conversation::tests::a_line_has_a_longest_length",
        )],
    },
    Mutant {
        name: "memory-empty-packets-free",
        rule: "a packet takes memory besides its bytes",
        file: "crates/net/src/memory.rs",
        right: "qlen.saturating_mul(OVERHEAD)",
        wrong: "qlen.saturating_mul(0)",
        killers: &[Killer::Test(Suite::DeviceUnits, "memory::tests::the_bound_is_exact")],
    },
    Mutant {
        name: "memory-bound-once",
        rule: "what is in the queue counts at each look",
        file: "crates/net/src/memory.rs",
        right: "self.most.saturating_sub(taken)",
        wrong: "self.most.saturating_sub(taken / 2)",
        killers: &[Killer::Test(Suite::DeviceUnits, "memory::tests::the_bound_is_exact")],
    },
    Mutant {
        name: "privileges-new-ones",
        rule: "programs get no privileges that were given up",
        file: "crates/cli/src/netem/privileges.rs",
        right: "thread::set_no_new_privs(true)?;",
        wrong: "thread::set_no_new_privs(false)?;",
        killers: &[Killer::Test(Suite::CommandUnits, "netem::privileges::tests::what_is_given_up_is_gone")],
    },
    Mutant {
        name: "privileges-more-kept",
        rule: "no more privileges are kept than are needed",
        file: "crates/cli/src/netem/privileges.rs",
        right: "let names = if is_root { CapabilitySet::empty() }",
        wrong: "let names = if is_root { CapabilitySet::SYS_RAWIO }",
        killers: &[Killer::Test(Suite::CommandUnits, "netem::privileges::tests::what_is_kept")],
    },
];
