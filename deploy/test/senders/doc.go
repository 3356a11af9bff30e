// Package senders runs real sending programs against Hooklock with the routes of docs/senders: what
// they do on a refusal, and that no event is lost or runs twice. A program that this machine cannot
// have is skipped.
package senders
