// Package remote has the commands that call the admin API of a running Hooklock.
//
// A Remote holds the flags that name the API and the token, a Desk is the client with the outputs
// of one command. A listing prints a list page by page. A doubt is an error after which it is not
// known whether a change was made.
package remote
