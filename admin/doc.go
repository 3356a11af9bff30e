// Package admin serves what people and machines ask about a running Hooklock: health and metrics. Nothing of it is on a delivery's path.
package admin
