//! Kubernetes: the same tests against a real API server, where one was built, and against as much of
//! one as fits into a file.

mod cluster;
mod fake;
mod journey;
mod real;

macro_rules! on_both {
    ($($name:ident)*) => {
        mod fake_api {
            $(#[tokio::test]
            async fn $name() {
                let (cluster, _fake) = super::fake::cluster().await;
                super::journey::$name(cluster.settle().await).await;
            })*
        }

        mod real_api {
            $(#[tokio::test]
            async fn $name() {
                if let Some(cluster) = super::real::cluster().await {
                    super::journey::$name(cluster.settle().await).await;
                }
            })*
        }
    };
}

on_both! {
    a_cordon_is_ours_to_take_back_and_a_persons_is_not
    a_drain_asks_every_pod_to_leave_that_can
    a_budget_holds_a_drain_open_and_is_named
    nothing_is_evicted_after_the_deadline
    what_is_left_at_the_deadline_is_deleted_only_if_that_is_configured
    a_drain_that_was_called_off_evicts_nobody
    r2_n2_what_is_left_is_deleted_where_the_drain_says_so
    r2_n20_a_listing_shows_what_kubernetes_holds_about_each_node
    a_pod_of_the_same_name_is_another_pod
    more_pods_than_a_page_has_all_leave
    writers_at_once_lose_nothing
    a_node_is_found_by_what_is_configured
    what_kubernetes_does_not_know_or_allow_is_no_drained_node
}
