// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline mcp`: commands as tools of the Model Context Protocol, over standard input and output.
//!
//! ```text
//! lines ── transport ──▶ rmcp ──▶ tools: arguments to words ──▶ process: the command, with limits ──▶ document and text
//! ```
//!
//! Each call runs in a process of its own: this program with `mcp -- WORDS`. It can be ended at any time, its memory has a limit, and a
//! fault of it does not end the server.

mod process;
mod tools;
mod transport;

use super::VERSION;
use crate::{external, output};
use miette::{IntoDiagnostic, Result};
use paceline_units::{DataSize, TimeDelta};
use process::Limits;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt};
use rmcp::{ErrorData, ServerHandler};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tools::TOOLS;

/// What the client says to the model about the server.
const INSTRUCTIONS: &str = "Paceline explains calls (WebRTC dumps, captures, event logs) and simulates congestion control. `explain` reads \
                            files of this machine; `what_if` runs other controllers on the path of a call; `list` names scenarios, \
                            controllers and metrics, which `run` and `compare` take.";

/// Arguments of `mcp`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The longest time of a call of a tool.
    #[arg(long, value_name = "TIME", default_value = "60 s")]
    limit: TimeDelta,
    /// The most memory that a call of a tool allocates (Linux).
    #[arg(long, value_name = "SIZE", default_value = "4000 MB")]
    memory: DataSize,
    /// The size of the files that a call of a tool names, all of them together.
    #[arg(long, value_name = "SIZE", default_value = "1000 MB")]
    input: DataSize,
    /// The words of a command: the call of a tool, in the process that the server started for it.
    #[arg(last = true, hide = true)]
    words: Vec<OsString>,
}

/// Answers requests until the end of the input, or runs one command for the server.
pub fn mcp(arguments: &Arguments) -> Result<ExitCode> {
    if !arguments.words.is_empty() {
        process::limit_memory(arguments.memory).into_diagnostic()?;
        external::forbid();
        output::add_texts();
        let program = OsString::from("paceline");
        return Ok(crate::run(&[&[program], arguments.words.as_slice()].concat()));
    }
    let limits = Limits { time: arguments.limit, memory: arguments.memory, input: arguments.input };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let server =
        Server { limits, running: Arc::new(Semaphore::new(cores)), waiting: Arc::new(Semaphore::new(WAITING_MAX)) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().into_diagnostic()?;
    runtime.block_on(async {
        let lines = transport::Lines::of_stdio();
        // The library ends a session that does not begin as the protocol says; the input may begin another one.
        while !lines.is_ended() {
            if let Ok(session) = server.clone().serve(lines.clone()).await {
                _ = session.waiting().await;
            }
        }
    });
    Ok(ExitCode::SUCCESS)
}

/// The largest number of calls without an answer.
const WAITING_MAX: usize = 64;

/// The tools and their limits.
#[derive(Clone)]
struct Server {
    limits: Limits,
    /// As many calls run at the same time as there are cores.
    running: Arc<Semaphore>,
    /// Calls without an answer.
    waiting: Arc<Semaphore>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("paceline", VERSION))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(tools::Entry::described).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let text = format!("no tool `{}`; the tools are {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(text, None));
        };
        // Errors of a call are results, as the protocol demands: the model reads them and tries again.
        let call = match (tool.call)(request.arguments.unwrap_or_default()) {
            Ok(call) => call,
            Err(error) => return Ok(failed(format!("arguments of {}: {error}", tool.name))),
        };
        let Ok(_place) = self.waiting.try_acquire() else {
            return Ok(failed(format!("{WAITING_MAX} calls are in progress; wait for an answer")));
        };
        let permit = self.running.clone().acquire_owned().await;
        let limits = self.limits;
        let answer = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            process::answer(&call, limits, &|| context.ct.is_cancelled())
        });
        Ok(match answer.await {
            Ok(Ok(answer)) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
                result.structured_content = Some(answer.document);
                result.into()
            }
            Ok(Err(error)) => failed(error),
            Err(error) => failed(error.to_string()),
        })
    }
}

fn failed(text: String) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(text)]).into()
}
