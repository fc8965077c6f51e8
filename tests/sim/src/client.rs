//! The client: starts workflows and sends what they are owed, again and again until it is
//! acknowledged. It also makes nuisance: duplicate starts, early and repeated signals.

use std::collections::{BTreeMap, VecDeque};

use steadfast_engine::decide::{Request, start};
use steadfast_model::event::Started;
use steadfast_model::{
    ChainOptions, Link, Namespace, Payload, RequestId, RunKey, SignalName, TaskQueue, WorkflowId,
    WorkflowType,
};
use steadfast_ports::Store;
use steadfast_ports::fake::{Rng, ScriptedGuests};
use steadfast_runtime::chain::{Minter, record};
use steadfast_runtime::message::{Answer, CallError, Input, NewRun, ReplyId};

use crate::family::{add_others, kids};
use crate::kin::add_kin;
use crate::plan::{Plan, script};
use crate::update::{Update, Updates};
use crate::work::is_workers;
use crate::world::{Event, World};

/// Something to get done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Todo {
    /// Start this workflow.
    Start(u64),
    /// Send this signal.
    Signal {
        /// Whom.
        workflow: u64,
        /// Which of its signals.
        index: usize,
        /// Its name.
        name: String,
    },
    /// Ask this workflow to cancel itself.
    Cancel(u64),
    /// Send this update, and wait for its end.
    Update(Update),
}

/// The client.
#[derive(Debug, Default)]
pub struct Client {
    todo: VecDeque<Todo>,
    waiting: BTreeMap<ReplyId, (Todo, RunKey)>,
    next_reply: u64,
    /// Workflows whose start was acknowledged.
    started: BTreeMap<u64, RunKey>,
    /// Signals that were acknowledged: the run and the request id.
    acknowledged: Vec<(RunKey, RequestId)>,
    pub(crate) updates: Updates,
    done_at_least: usize,
}

impl Client {
    pub(crate) fn prepare(plan: &Plan, guests: &ScriptedGuests) -> Self {
        let mut rng = Rng::new(plan.seed ^ 0x1234);
        let mut client = Self::default();
        for (name, ops) in kids() {
            guests.bind(b"component", name, ops);
        }
        for workflow in 0..plan.workflows {
            let (mut ops, owed) = script(&mut rng);
            let mut family = Rng::new(plan.seed ^ 0xc41d ^ (workflow << 32));
            add_others(&mut family, &mut ops, plan.workflows);
            add_kin(plan.seed, workflow, &mut ops);
            guests.bind(b"component", &format!("w{workflow}"), ops);
            client.todo.push_back(Todo::Start(workflow));
            if rng.chance(100) {
                client.todo.push_back(Todo::Start(workflow));
            }
            for (index, name) in owed.signals.into_iter().enumerate() {
                client.todo.push_back(Todo::Signal {
                    workflow,
                    index,
                    name,
                });
            }
            for (index, (name, input)) in owed.updates.into_iter().enumerate() {
                client.todo.push_back(Todo::Update(Update {
                    workflow,
                    index,
                    name,
                    input,
                }));
            }
            if owed.cancel {
                client.todo.push_back(Todo::Cancel(workflow));
            }
        }
        client.done_at_least = client.todo.len();
        client
    }

    /// True when everything is acknowledged.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.todo.is_empty() && self.waiting.is_empty() && self.updates.is_done()
    }

    /// The runs whose start was acknowledged.
    pub fn runs(&self) -> impl Iterator<Item = RunKey> + '_ {
        self.started.values().copied()
    }

    /// The acknowledged signals.
    #[must_use]
    pub fn acknowledged(&self) -> &[(RunKey, RequestId)] {
        &self.acknowledged
    }

    /// Nobody will answer what was on its way.
    pub(crate) fn host_died(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        self.todo
            .extend(waiting.into_values().map(|(todo, _)| todo));
        self.todo.extend(self.updates.host_died());
    }

    /// The run of a workflow whose start was acknowledged.
    pub(crate) fn started(&self, workflow: u64) -> Option<RunKey> {
        self.started.get(&workflow).copied()
    }

    /// Something is to be done, again.
    pub(crate) fn again(&mut self, todo: Todo) {
        self.todo.push_back(todo);
    }

    pub(crate) fn id(&mut self) -> ReplyId {
        self.next_reply += 1;
        ReplyId(self.next_reply * 2)
    }
}

fn request_id(workflow: u64, index: usize) -> RequestId {
    RequestId::new(format!("signal-{workflow}-{index}")).expect("a name")
}

impl World {
    /// The client does the next thing.
    pub(crate) fn client_step(&mut self) {
        if !(self.client.is_done() && self.is_healed) {
            let wait = 1 + self.rng.below(200);
            self.after(wait, Event::Client);
        }
        if !self.is_up {
            return;
        }
        let Some(todo) = self.client.todo.pop_front() else {
            return;
        };
        match todo {
            Todo::Start(workflow) => self.client_start(workflow),
            Todo::Signal {
                workflow,
                index,
                name,
            } => {
                let input = Payload::json(format!("\"{index}\""));
                let request = Request::Signal {
                    name: SignalName::new(name.clone()).expect("a name"),
                    input,
                    request_id: request_id(workflow, index),
                    identity: String::new(),
                };
                self.client_request(
                    workflow,
                    Todo::Signal {
                        workflow,
                        index,
                        name,
                    },
                    request,
                );
            }
            Todo::Update(update) => self.client_update(update),
            Todo::Cancel(workflow) => {
                let request = Request::Cancel {
                    reason: "please".to_owned(),
                    identity: String::new(),
                    request_id: RequestId::new(format!("cancel-{workflow}")).expect("a name"),
                };
                self.client_request(workflow, Todo::Cancel(workflow), request);
            }
        }
    }

    fn client_start(&mut self, workflow: u64) {
        let namespace = Namespace::new("default").expect("a name");
        let workflow_id = WorkflowId::new(format!("wf-{workflow}")).expect("a name");
        let replaces = match self.store.current_run(&namespace, &workflow_id) {
            Ok(Some(run)) => {
                // Started before, by this very request: its acknowledgement was lost.
                self.client.started.insert(workflow, run);
                return;
            }
            Ok(None) => None,
            Err(_) => return self.client.todo.push_back(Todo::Start(workflow)),
        };
        let minted = self.mint.mint(0, 1);
        let (run, run_id, random_seed) = (minted.run, minted.run_id, minted.random_seed);
        let now = self.wall();
        let workflow_type = WorkflowType::new(format!("w{workflow}")).expect("a name");
        let component = ScriptedGuests::digest(b"component");
        let task_queue = TaskQueue::new("default").expect("a name");
        let started = Started {
            namespace,
            workflow_id,
            run_id,
            workflow_type,
            component,
            task_queue,
            input: Payload::json("\"in\""),
            random_seed,
            request_id: RequestId::new(format!("start-{workflow}")).expect("a name"),
            identity: String::new(),
            attempt: 1,
            options: ChainOptions::default(),
            link: Link::default(),
            parent: None,
        };
        let record = record(run, &started, now);
        let reply = self.client.id();
        self.client
            .waiting
            .insert(reply, (Todo::Start(workflow), run));
        let new = Box::new(NewRun {
            record,
            events: vec![start(started, now)],
            replaces,
            first: None,
        });
        self.send(run, Input::Start { new, reply });
    }

    fn client_request(&mut self, workflow: u64, todo: Todo, request: Request) {
        let Some(run) = self.client.started.get(&workflow).copied() else {
            self.client.todo.push_back(todo);
            return;
        };
        let reply = self.client.id();
        self.client.waiting.insert(reply, (todo, run));
        self.send(
            run,
            Input::Request {
                run,
                request: Box::new(request),
                reply: Some(reply),
            },
        );
    }

    /// An answer arrives.
    pub(crate) fn reply(&mut self, id: ReplyId, result: Result<Answer, CallError>) {
        if is_workers(id) {
            return self.worker_reply(id, result);
        }
        if self.client.updates.is_waiting(id) {
            return self.update_reply(id, result);
        }
        let Some((todo, run)) = self.client.waiting.remove(&id) else {
            panic!(
                "seed {}: a second answer to request {id:?}: {result:?}",
                self.plan.seed
            );
        };
        match (result, &todo) {
            (Ok(_), Todo::Start(workflow)) => {
                self.client.started.insert(*workflow, run);
            }
            (
                Ok(_),
                Todo::Signal {
                    workflow, index, ..
                },
            ) => {
                self.client
                    .acknowledged
                    .push((run, request_id(*workflow, *index)));
            }
            (Ok(_) | Err(CallError::Rejected(_)), _) => {}
            (Err(_), _) => self.client.todo.push_back(todo),
        }
    }
}
