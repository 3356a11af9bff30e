package proxy

import "hooklock/idem"

// beginTrace finds out which trace a delivery belongs to: one that is recorded here, or the
// sender's.
func (d *delivery) beginTrace() {
	parent := idem.ParseTrace(d.req.headerValue("traceparent"))
	if d.handler.options.Tracer != nil {
		d.report.Trace = d.handler.options.Tracer.Begin(&d.report, parent, d.req.headerValue("tracestate"))
	}
	switch t := d.report.Trace; {
	case t != nil:
		d.trace = t.TraceParent()
		d.report.SpanID = d.trace.SpanID()
	case parent != idem.TraceContext{}:
		d.trace = parent
	default:
		d.trace = idem.NewTrace()
	}
	d.report.TraceID = d.trace.TraceID()
}

// beginTry begins the trace of a try, which is linked to the one in which the delivery was
// accepted.
func (d parkedTry) beginTry(accepted idem.TraceContext) {
	d.trace = accepted
	d.report.TraceID, d.report.Execution = accepted.TraceID(), d.execution.Lock().Execution
	if d.handler.options.Tracer == nil {
		return
	}
	if t := d.handler.options.Tracer.Try(&d.report, accepted); t != nil {
		d.report.Trace, d.report.SpanID = t, t.TraceParent().SpanID()
	}
}
