// Package doctor is the command doctor: it looks at everything that Hooklock needs around it, and with a probe at what stands in front.
package doctor
