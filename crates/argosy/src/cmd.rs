//! The commands, and where each is carried out.

mod apply;

mod audit;

mod backup;

mod cloud;

mod command;

mod config;

mod context;

mod demo;

mod doctor;

mod follow;

mod instance;

mod node;

mod pages;

mod policy;

mod pool;

mod provider;

mod recovery;

mod resource;

mod safety;

mod server;

mod sim;

mod token;

mod top;

mod up;

mod wait;

mod why;

use crate::context::Connection;
use crate::failure::{Exit, Failure};
use crate::output::{Colour, Screen, print};
use crate::session::{Printing, Session};
use clap::{ArgMatches, Args, Parser, Subcommand};

pub(crate) use pages::tree;

/// One control plane for GPU fleets.
///
/// Declare clusters and node pools; Argosy provisions them through adapters, watches them and their
/// machines, takes sick ones out of service, and can always say why things are as they are.
#[derive(Parser, Debug)]
#[command(
    name = "argosy",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  argosy up                                          a fleet on this machine, with faults and a dashboard
  argosy demo inject xid-79                          break one of its GPUs, and watch
  argosy cluster create alpha --provider gcp --region us-east1 --wait
  argosy nodepool create workers -c alpha --machine-type n1-standard-4 --nodes 3
  argosy cluster list --watch
  argosy node list --status UNHEALTHY                which machines are bad
  argosy why node/gpu-17                             and why
  argosy help exit-codes"
)]
pub(crate) struct Cli {
    /// When to use colour. NO_COLOR is respected too.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_possible_values = true
    )]
    color: Colour,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    #[command(visible_alias = "clusters")]
    Cluster(Client<resource::ClusterVerb>),
    #[command(visible_aliases = ["nodepools", "np"])]
    Nodepool(Client<resource::NodepoolVerb>),
    #[command(visible_alias = "nodes")]
    Node(Client<node::Verb>),
    #[command(visible_alias = "instances")]
    Instance(Client<instance::Verb>),
    #[command(visible_alias = "providers")]
    Provider(Client<provider::Verb>),
    #[command(name = "command", visible_alias = "commands")]
    Commands(Client<command::Verb>),
    Why(Client<why::Why>),
    Top(Client<top::Top>),
    Pause(Client<safety::Pause>),
    Resume(Client<safety::Resume>),
    Safety(Client<safety::Safety>),
    Recovery(Client<recovery::Verb>),
    #[command(visible_alias = "policies")]
    Policy(Client<policy::Verb>),
    Apply(Client<apply::Apply>),
    Diff(Client<apply::Diff>),
    Wait(Client<wait::Wait>),
    Audit(Client<audit::Verb>),
    Cloud(Client<cloud::Verb>),
    Demo(Client<demo::Verb>),
    Doctor(Client<doctor::Doctor>),
    Sim(sim::Sim),
    Context(context::Verb),
    Token(token::Verb),
    Up(up::Up),
    Server(server::Args),
    Config(config::Verb),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Completions(pages::Completions),
    Man(pages::Man),
    /// Print the version, and the profile it was built with.
    #[command(after_help = "Examples:\n  argosy version")]
    Version,
    Help(pages::Help),
}

// A command that talks to a server. Not a doc comment: clap would print it as the command's help.
#[derive(Args, Debug)]
struct Client<C: Args> {
    #[command(flatten)]
    printing: Printing,
    #[command(flatten)]
    connection: Connection,
    // Last: clap takes the help of what is flattened last.
    #[command(flatten)]
    command: C,
}

/// Carries out a command line that was understood.
pub(crate) fn run(cli: Cli, matches: &ArgMatches) -> Result<Exit, Failure> {
    let screen = Screen::detect(cli.color.wanted());
    match cli.command {
        Command::Cluster(c) => client(c, screen, resource::cluster),
        Command::Nodepool(c) => client(c, screen, resource::nodepool),
        Command::Node(c) => client(c, screen, node::run),
        Command::Instance(c) => client(c, screen, instance::run),
        Command::Provider(c) => client(c, screen, provider::run),
        Command::Commands(c) => client(c, screen, command::run),
        Command::Why(c) => client(c, screen, why::run),
        Command::Top(c) => client(c, screen, top::run),
        Command::Pause(c) => client(c, screen, safety::pause),
        Command::Resume(c) => client(c, screen, safety::resume),
        Command::Safety(c) => client(c, screen, safety::safety),
        Command::Recovery(c) => client(c, screen, recovery::run),
        Command::Policy(c) => client(c, screen, policy::run),
        Command::Apply(c) => client(c, screen, apply::apply),
        Command::Diff(c) => client(c, screen, apply::diff),
        Command::Wait(c) => client(c, screen, wait::wait),
        Command::Audit(c) => client(c, screen, audit::run),
        Command::Cloud(c) => client(c, screen, cloud::run),
        Command::Demo(c) => client(c, screen, demo::run),
        Command::Doctor(c) => client(c, screen, doctor::run),
        Command::Sim(sim) => sim::run(sim, screen),
        Command::Context(verb) => context::run(verb, screen),
        Command::Token(verb) => token::run(&verb),
        Command::Up(up) => up::run(&up, screen),
        Command::Server(args) => server::run(&args, matches.subcommand_matches("server")),
        Command::Config(verb) => config::run(&verb, screen, matches.subcommand_matches("config")),
        Command::Backup(backup) => backup::backup(&backup),
        Command::Restore(restore) => backup::restore(&restore, screen),
        Command::Completions(shell) => pages::completions(&shell),
        Command::Man(man) => pages::man(&man),
        Command::Version => {
            print(&argosy_term::version("argosy", env!("CARGO_PKG_VERSION")));
            Ok(Exit::Ok)
        }
        Command::Help(help) => pages::help(&help),
    }
}

/// Runs a client's command on one thread: a client waits for one answer at a time.
fn client<C: Args>(
    client: Client<C>,
    screen: Screen,
    run: impl AsyncFnOnce(&Session, C) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let session = Session::open(&client.connection, &client.printing, screen)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed("cannot start").why(error))?;
    runtime.block_on(async {
        tokio::select! {
            // A command that has something to say about an interruption says it first.
            biased;
            result = run(&session, client.command) => result,
            _ = tokio::signal::ctrl_c() => Err(Failure::new(Exit::Interrupted, "interrupted")),
        }
    })
}
