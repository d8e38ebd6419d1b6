//! `argosy-agent inject`: Makes a running agent believe that something happened.
