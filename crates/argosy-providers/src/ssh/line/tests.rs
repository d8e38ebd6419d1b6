use super::*;

#[test]
fn what_ssh_writes_is_understood() {
    let check = |stderr: &str, expected: fn(String) -> Silence| {
        assert_eq!(judge(stderr), expected(last_line(stderr)), "{stderr}");
    };
    check(
        "@@@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@@@@@\n\
         IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\nHost key verification failed.\r\n",
        Silence::Stranger,
    );
    check(
        "No ED25519 host key is known for [127.0.0.1]:2222 and you have requested strict checking.\n\
         Host key verification failed.\r\n",
        Silence::Stranger,
    );
    check("root@10.0.0.1: Permission denied (publickey,password).\r\n", Silence::Shut);
    check(
        "Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures",
        Silence::Shut,
    );
    check("ssh: connect to host 10.0.0.1 port 22: Connection refused\r\n", Silence::Away);
    check("ssh: connect to host 10.0.0.1 port 22: Connection timed out\r\n", Silence::Away);
    check("ssh: Could not resolve hostname gpu-1: Name or service not known", Silence::Away);
    check("kex_exchange_identification: Connection closed by remote host", Silence::Away);
    check("Connection timed out during banner exchange", Silence::Away);
    check("client_loop: send disconnect: Broken pipe", Silence::Broken);
    check("Timeout, server 10.0.0.1 not responding.", Silence::Broken);
    check("Connection to 10.0.0.1 closed by remote host.", Silence::Broken);
    check("command-line: line 0: Bad configuration option: x", Silence::Mute);
    assert_eq!(judge(""), Silence::Broken("the connection ended".to_owned()));
}

#[test]
fn words_of_hosts_are_cut_and_cleaned() {
    assert_eq!(last_line("a\n\x1b[31mb\r\n\n"), "[31mb");
    assert_eq!(last_line(&"x".repeat(1000)).len(), 300);
}
