// Package doctor is the command doctor: it looks at everything that Hooklock needs around it, and with a probe at what stands in front.
//
// Words: a check and its finding are those of package diagnose. A probe sends requests through what stands in front and takes Hooklock's place behind
// it; an arrival is what came of one of them, and what it answered what came back.
package doctor
