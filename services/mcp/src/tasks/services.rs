//! The state of tasks on this node.

use std::{ops::Deref, sync::Arc};

use crate::{nodes::context::NodeContext, tasks::running::Tasks};

/// The node, and the tasks that run on it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TaskServices(Arc<TaskParts>);

/// The contents of [`TaskServices`].
#[derive(Debug)]
pub struct TaskParts {
    node: NodeContext,
    /// The tasks that run here.
    pub(crate) tasks: Tasks,
}

impl Deref for TaskServices {
    type Target = TaskParts;
    fn deref(&self) -> &TaskParts {
        &self.0
    }
}

impl Deref for TaskParts {
    type Target = NodeContext;
    fn deref(&self) -> &NodeContext {
        &self.node
    }
}

impl TaskServices {
    pub(crate) fn new(node: NodeContext) -> Self {
        Self(Arc::new(TaskParts {
            node,
            tasks: Tasks::default(),
        }))
    }
}
