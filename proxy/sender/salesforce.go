package sender

import (
	"bytes"
	"html"
	"io"
	"slices"

	"hooklock/idem"
	"hooklock/idem/naming/xmlscan"
)

// Salesforce returns the preset of Salesforce (outbound messages).
func (known) Salesforce() Preset {
	return Preset{
		Name: "salesforce", Scheme: "none", ExtractID: salesforceID,
		IDText: "OrganizationId, and the Id of every Notification", OnMismatch: idem.MismatchReplayUnsigned,
		Strategy: idem.Wait, Respond: only5xx(),
		Facts: Facts{
			Retries: RetriesAll, RetriesFor: day, UsesAnswer: usesEveryAnswer,
			Answer:    "only a SOAP body with `<Ack>true</Ack>` says that the message was received",
			RetriesOn: "after everything but an acknowledgement, until a message is 24 hours old",
			Changes:   "the values of the fields; the newest are sent",
		},
		Page: Page{
			Title:    "Salesforce outbound messages",
			Workflow: "salesforce/{xml.Envelope.Body.notifications.Notification[0].sObject.Id ?? \"other\"}",
			SampleID: "00D000000000001AAA/one",
		},
		Sources: []string{"https://developer.salesforce.com/docs/atlas.en-us.api.meta/api/sforce_api_om_outboundmessaging_understanding.htm",
			"https://developer.salesforce.com/docs/atlas.en-us.api.meta/api/sforce_api_om_outboundmessaging_notifications.htm"},
		Notes: []string{
			"Salesforce offers mutual TLS and its addresses instead of a signature; OrganizationId is only a claim.",
			"Up to 100 notifications come in one message.",
			"Platform events and change data capture are not webhooks.",
		},
		sample: func(s *sample) {
			s.request.Body = []byte(
				`<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>` +
					`<notifications xmlns="http://soap.sforce.com/2005/09/outbound"><OrganizationId>00D000000000001AAA</OrganizationId><ActionId>04k000000000001AAA</ActionId>` +
					`<Notification><Id>` + html.EscapeString(s.id) +
					`</Id><sObject xmlns:sf="urn:sobject.enterprise.soap.sforce.com"><sf:Id>001000000000001AAA</sf:Id></sObject></Notification>` +
					`</notifications></soapenv:Body></soapenv:Envelope>`)
			s.setType("text/xml; charset=utf-8")
			s.addField("SOAPAction", `""`)
		},
	}
}

// salesforceID returns the organisation and the IDs of all notifications. A template could name
// only one of them.
func salesforceID(d *Delivery) EventID {
	organisation := []string{"Envelope", "Body", "notifications", "OrganizationId"}
	notification := []string{"Envelope", "Body", "notifications", "Notification", "Id"}
	var organisations, notifications []string
	whole := eachXMLElement(d.Body, func(path []string, text []byte) bool {
		id := string(bytes.TrimSpace(text))
		switch {
		case slices.Equal(path, organisation):
			organisations = append(organisations, id)
		case slices.Equal(path, notification):
			notifications = append(notifications, id)
		default:
			return true
		}
		return len(organisations) < 2 && len(notifications) <= maxElements && len(text) < mostElementText
	})
	switch {
	case len(organisations) > 1:
		return ambiguousID
	case !whole || len(organisations) == 0 || len(notifications) == 0:
		return missingID
	case len(notifications) == 1:
		return foundID("salesforce", organisations[0], notifications[0])
	}
	return batchID("salesforce", [][]string{organisations, notifications})
}

// mostElementText is how many bytes of an element's text eachXMLElement gives.
const mostElementText = 4<<10 + 1

// eachXMLElement calls f at the end of each element of an XML document, with the local names on the
// way to it and the text since the latest start of an element, until f returns false. It reports
// whether it came to the end of the document.
func eachXMLElement(document []byte, f func(path []string, text []byte) bool) bool {
	var path []string
	var text []byte
	s := xmlscan.New(bytes.NewReader(document))
	for {
		kind, err := s.Next()
		if err != nil {
			return err == io.EOF
		}
		switch kind {
		case xmlscan.Start:
			path = append(path, string(s.Name()))
			text = text[:0]
		case xmlscan.Text:
			text = append(text, s.Text()[:min(len(s.Text()), mostElementText-len(text))]...)
		case xmlscan.End:
			if !f(path, text) {
				return false
			}
			path = path[:len(path)-1]
		}
	}
}
