package proxy

import (
	"errors"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// name builds workflow, key and fingerprint.
func (d *delivery) name() *ending {
	since := d.h.o.Now()
	var err error
	d.names, err = d.route.Keys.Name(&d.req.msg)
	d.report.Stages.Key = span(since, d.h.o.Now())
	var bad *naming.NameError
	_ = errors.As(err, &bad)
	d.report.WorkflowPart, d.report.EventIDPart = partResults(d.route.Keys, d.names.EventID, bad)
	d.report.Ordered = d.names.Ordered
	var end *ending
	switch {
	case bad != nil:
		end = d.reject(reject(bad.Code, bad.Detail))
	case err != nil:
		end = d.reject(reject(codeBadRequest, err.Error()))
	default:
		d.report.Workflow, d.report.Key, d.report.EventID = d.names.Workflow, d.names.Key.Short(), d.names.EventID
		d.report.Labels = d.names.Labels
		if !d.names.Missing {
			d.report.Keyed = d.report.Keyed && d.names.Key != ""
			return nil
		}
		if paused := d.h.o.Paused; paused != nil && paused(d.route.Name, d.names.Workflow) != nil {
			end = d.refuse(idem.DecisionPaused)
			break
		}
		end = d.refuse(idem.DecisionRejected)
		end.forward = forwardAlways // on_missing_event_id: pass
		return end
	}
	end.forward = forwardByRule
	return end
}

// partResults returns how the parts of a name were found, which is complete if bad is nil.
func partResults(keys *naming.Keys, id string, bad *naming.NameError) (workflow, eventID PartResult) {
	workflow = PartOK
	switch {
	case bad != nil && bad.Part == naming.PartWorkflow:
		return partResult(bad.Code), ""
	case !keys.ReadsEventID():
	case bad != nil:
		eventID = partResult(bad.Code)
	case id == "":
		eventID = PartMissing
	default:
		eventID = PartOK
	}
	return workflow, eventID
}

func partResult(code string) PartResult {
	switch code {
	case naming.CodeEventIDAmbiguous:
		return PartAmbiguous
	case naming.CodeKeyTooLong:
		return PartTooLong
	}
	return PartMissing
}
