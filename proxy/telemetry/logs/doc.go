// Package logs writes lines to an output that may not take them: a pipe without a reader, a disk
// that is full. Callers hand over a line and go on. A line for which there is no room is counted,
// and another line says how many are missing at that place.
//
// Words: a Writer takes lines and a batch is those that are written together. A line that had no
// room is lost, and counted. A Reserved line has room of its own, so that it is not.
package logs
