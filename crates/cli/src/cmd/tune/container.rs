//! A container that keeps its settings from everybody in it, root included: what that means, and
//! the text for whoever starts it.

use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either, phrases};
use crate::terminal::{answer_layout, print, print_json};
use fullpipe_host::tune::ThisMachine;
use fullpipe_model::tune::HostPlan;
use fullpipe_report::plan::host_plan::{Form, render};

/// Refuses a plan that nobody in here can apply, after printing what its container needs.
///
/// # Errors
/// A setting of the plan cannot be set from within.
pub fn refuse(machine: &ThisMachine, plan: &HostPlan, json: bool) -> Result<(), Failure> {
    let mut refusals = plan.changes.iter().filter_map(|change| machine.may_set(&change.knob).err());
    let Some(why) = refusals.find_map(|refused| refused.container()) else { return Ok(()) };
    let [docker, kubernetes] =
        [Form::Docker, Form::Kubernetes].map(|form| render(plan, form, answer_layout()));
    if json {
        let container = serde_json::json!({"docker": docker, "kubernetes": kubernetes});
        print_json(&serde_json::json!({"applied": false, "plan": plan, "container": container}))?;
    } else {
        print(&either(
            format!("# for Docker\n{docker}\n# for Kubernetes\n{kubernetes}"),
            format!("# 用于 Docker\n{docker}\n# 用于 Kubernetes\n{kubernetes}"),
        ))?;
    }
    let chinese = phrases::chinese(why);
    Err(Failure::new(
        Kind::Missing,
        Sentence::new(
            format!(
                "apply: {why}, as in a container: nothing in here can change these settings, and nothing \
                 is changed; start the container with the text above (`fullpipe tune plan --format docker` \
                 or `kubernetes` prints it alone), or let root of the host run this in the container's \
                 network namespace (`nsenter --net --target PID`)"
            ),
            format!(
                "应用：{chinese}，如同在容器中：在这里无法改变这些设置，也没有改变任何东西；请用上面的内容启动\
                 容器（`fullpipe tune plan --format docker` 或 `kubernetes` 单独输出它），或由宿主机的 root 在容器的\
                 网络命名空间中运行（`nsenter --net --target PID`）"
            ),
        ),
    ))
}
