// Package doctor is the command doctor: it checks everything that Hooklock needs around it, and
// with a probe the proxies in front.
//
// Checks and findings are those of package diagnose. A probe sends requests through the proxies in
// front, and takes Hooklock's place behind them. An arrival is a request that arrived there.
package doctor
