// Package docs holds what is written down against what is there: configurations in the documentation load, links lead somewhere, and every
// decision, code, header, metric and log event that the code has is in a table.
package docs
