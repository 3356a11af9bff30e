package proxy

import (
	"errors"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// readNames builds workflow, key and fingerprint.
func (d *delivery) readNames() *ending {
	since, r := d.handler.options.Now(), &d.report
	names, err := d.route.Keys.Name(&d.req.msg)
	bad, _ := errors.AsType[*naming.NameError](err)
	d.names, r.Stages.Key, r.Ordered = names, Stretch{since, d.handler.options.Now().Sub(since)}, names.Ordered
	r.WorkflowPart, r.EventIDPart = partResults(d.route.Keys, names.EventID, bad)
	switch {
	case bad != nil:
		return d.rejectWith(newRejection(bad.Code, bad.Detail)).withForward(forwardByRule)
	case err != nil:
		return d.rejectWith(newRejection(codeBadRequest, err.Error())).withForward(forwardByRule)
	}
	r.Workflow, r.Key, r.EventID, r.Labels = names.Workflow, names.Key.Short(), names.EventID, names.Labels
	if !names.Missing {
		d.findTwin()
		r.Keyed = r.Keyed && names.Key != ""
		return nil
	}
	if paused := d.handler.options.Paused; paused != nil && paused(d.route.Name, names.Workflow) != nil {
		return d.refuseWith(idem.DecisionPaused).withForward(forwardByRule)
	}
	return d.refuseWith(idem.DecisionRejected).withForward(forwardAlways) // on_missing_event_id: pass
}

// partResults returns how the parts of a name were found, which is complete if bad is nil.
func partResults(keys *naming.Keys, id string, bad *naming.NameError) (workflow, eventID PartResult) {
	switch {
	case bad != nil && bad.Part == naming.PartWorkflow:
		return partResult(bad.Code), ""
	case !keys.ReadsEventID():
		return PartOK, ""
	case bad != nil:
		return PartOK, partResult(bad.Code)
	case id == "":
		return PartOK, PartMissing
	case naming.IsPlaceholder(id):
		return PartOK, PartPlaceholder
	}
	return PartOK, PartOK
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
