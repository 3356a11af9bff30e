package sender

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
)

// sampleOf makes the delivery of one preset. The bodies are ours, in the shape that the sender documents.
func sampleOf(preset string) func(*sample) error {
	return map[string]func(*sample) error{
		"stripe": sampleStripe, "github": sampleGitHub, "gitlab": sampleGitLab, "bitbucket": sampleBitbucket, "shopify": sampleShopify, "slack": sampleSlack,
		"twilio": sampleTwilio, "sendgrid": sampleSendGrid, "paypal": samplePayPal, "square": sampleSquare, "adyen": sampleAdyen, "mailgun": sampleMailgun,
		"hubspot": sampleHubSpot, "zoom": sampleZoom, "jira": sampleJira, "linear": sampleLinear, "discord": sampleDiscord,
		"standard-webhooks": sampleStandard, "cloudevents": sampleCloudEvents, "sns": sampleSNS, "pubsub": samplePubSub, "eventgrid": sampleEventGrid,
	}[preset]
}

func sampleStripe(s *sample) error {
	s.body(`{"id":%s,"object":"event","created":`+s.seconds()+`,"type":"invoice.paid","livemode":false,"data":{"object":{"id":"in_sample","object":"invoice"}}}`, "evt_"+s.id)
	if !s.unsigned {
		s.add(stripeHeader, "t="+s.seconds()+",v1="+s.hmac256(inHex, s.seconds(), ".", string(s.request.Body)))
	}
	return nil
}

func (s *sample) signBody(header, prefix string, enc encoding) {
	if !s.unsigned {
		s.add(header, prefix+s.hmac256(enc, string(s.request.Body)))
	}
}

func sampleGitHub(s *sample) error {
	s.body(`{"action":"opened","issue":{"number":1,"title":%s},"repository":{"id":1,"full_name":"octo/sample"},"sender":{"login":"octo","id":1}}`, s.id)
	s.add("X-GitHub-Event", "issues")
	s.add("X-GitHub-Delivery", s.id)
	s.add("X-GitHub-Hook-ID", "1001")
	s.signBody("X-Hub-Signature-256", "sha256=", inHex)
	return nil
}

func sampleGitLab(s *sample) error {
	s.body(`{"object_kind":"push","project_id":1,"checkout_sha":%s}`, s.id)
	s.add("X-Gitlab-Event", "Push Hook")
	s.add("Idempotency-Key", s.id)
	switch {
	case s.unsigned:
		return nil
	case isSigningSecret(s.secret):
		return s.standard(s.id)
	}
	s.add("X-Gitlab-Token", string(s.secret))
	return nil
}

func sampleBitbucket(s *sample) error {
	s.body(`{"push":{"changes":[]},"repository":{"full_name":%s}}`, "team/"+s.id)
	s.add("X-Event-Key", "repo:push")
	s.add("X-Hook-UUID", "{5d9c5e2a-0000-4000-8000-000000000001}")
	s.add("X-Request-UUID", s.id)
	s.signBody("X-Hub-Signature", "sha256=", inHex)
	return nil
}

func sampleShopify(s *sample) error {
	s.body(`{"id":1,"name":%s,"total_price":"403.00"}`, s.id)
	s.add("X-Shopify-Topic", "orders/create")
	s.add("X-Shopify-Shop-Domain", "sample.myshopify.com")
	s.add("X-Shopify-Webhook-Id", s.id)
	s.signBody("X-Shopify-Hmac-Sha256", "", inBase64)
	return nil
}

func (s *sample) v0(header, timeHeader string) {
	if !s.unsigned {
		s.add(timeHeader, s.seconds())
		s.add(header, "v0="+s.hmac256(inHex, "v0:", s.seconds(), ":", string(s.request.Body)))
	}
}

func sampleSlack(s *sample) error {
	s.body(`{"team_id":"T0001","api_app_id":"A0001","event":{"type":"app_mention","user":"U1","text":"hi","channel":"C1"},"type":"event_callback","event_id":%s,"event_time":`+s.seconds()+`}`, "Ev_"+s.id)
	s.v0(slackHeader, slackTime)
	return nil
}

func sampleZoom(s *sample) error {
	s.body(`{"event":"meeting.started","event_ts":`+millis(s.happened)+`,"payload":{"account_id":"acc_sample","object":{"uuid":%s,"id":"123","topic":"sample"}}}`, s.id)
	s.v0(zoomHeader, zoomTime)
	return nil
}

func sampleTwilio(s *sample) error {
	form := url.Values{"MessageSid": {s.id}, "MessageStatus": {"delivered"}, "From": {"+15005550006"}, "To": {"+15005550001"}}
	s.request.Body = []byte(form.Encode())
	s.set("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")
	s.add("I-Twilio-Idempotency-Token", s.id)
	if s.unsigned {
		return nil
	}
	parts := appendForm([][]byte{[]byte(s.url)}, form)
	s.add(twilioHeader, string(newMAC(sha1.New, s.secret).sign(nil, inBase64, parts...)))
	return nil
}

func sampleSendGrid(s *sample) error {
	s.body(`[{"email":"sample@example.com","event":"delivered","sg_event_id":%s,"timestamp":`+s.seconds()+"}]\r\n", s.id)
	if s.unsigned {
		return nil
	}
	signature, err := signWith[*ecdsa.PrivateKey](s, crypto.SHA256, append([]byte(s.seconds()), s.request.Body...))
	if err != nil {
		return err
	}
	s.add(sendGridHeader, base64.StdEncoding.EncodeToString(signature))
	s.add(sendGridTime, s.seconds())
	return nil
}

func samplePayPal(s *sample) error {
	s.body(`{"id":%s,"event_version":"1.0","create_time":"`+s.rfc3339()+`","resource_type":"capture","event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"id":"CAP-SAMPLE"}}`, "WH-"+s.id)
	if s.unsigned {
		return nil
	}
	signature, err := signWith[*rsa.PrivateKey](s, crypto.SHA256, paypalContent([]byte(s.id), []byte(s.rfc3339()), s.webhookID, s.request.Body))
	if err != nil {
		return err
	}
	s.add(paypalID, s.id)
	s.add(paypalTime, s.rfc3339())
	s.add(paypalAlgo, "SHA256withRSA")
	s.add(paypalHeader, base64.StdEncoding.EncodeToString(signature))
	return nil
}

func sampleSquare(s *sample) error {
	s.body(`{"merchant_id":"SAMPLE","type":"payment.updated","event_id":%s,"created_at":"`+s.rfc3339()+`","data":{"type":"payment","id":"p1"}}`, s.id)
	if !s.unsigned {
		s.add(squareHeader, s.hmac256(inBase64, s.url, string(s.request.Body)))
	}
	return nil
}

func sampleAdyen(s *sample) error {
	var signature string
	if !s.unsigned {
		key, err := hex.DecodeString(string(s.secret))
		if err != nil || len(key) == 0 {
			return errors.New("give the HMAC key in hex")
		}
		signature = s.keyedSHA256(key, inBase64, strings.Join([]string{s.id, "", "SampleCOM", "order-1", "1000", "EUR", "AUTHORISATION", "true"}, ":"))
	}
	s.body(`{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":%s},"amount":{"currency":"EUR","value":1000},"eventCode":"AUTHORISATION",`+
		`"eventDate":"`+s.rfc3339()+`","merchantAccountCode":"SampleCOM","merchantReference":"order-1","pspReference":%s,"success":"true"}}]}`, signature, s.id)
	return nil
}

func sampleMailgun(s *sample) error {
	var signature string
	nonce := strings.Repeat("a", 40) + s.seconds()
	if !s.unsigned {
		signature = s.hmac256(inHex, s.seconds(), nonce)
	}
	s.body(`{"signature":{"timestamp":"`+s.seconds()+`","token":%s,"signature":%s},"event-data":{"id":%s,"event":"opened"}}`, nonce, signature, s.id)
	return nil
}

func sampleHubSpot(s *sample) error {
	s.body(`[{"eventId":1,"subscriptionId":1,"portalId":1,"appId":1,"occurredAt":`+millis(s.happened)+`,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":1,"changeSource":%s}]`, s.id)
	if !s.unsigned {
		s.add(hubspotV3, s.hmac256(inBase64, s.request.Method, s.url, string(s.request.Body), s.millis()))
		s.add(hubspotTime, s.millis())
	}
	return nil
}

func sampleJira(s *sample) error {
	s.body(`{"timestamp":`+millis(s.happened)+`,"webhookEvent":"jira:issue_updated","issue":{"id":"1","key":%s}}`, "SAMPLE-1")
	s.add("X-Atlassian-Webhook-Identifier", s.id)
	s.signBody("X-Hub-Signature", "sha256=", inHex)
	return nil
}

func sampleLinear(s *sample) error {
	s.body(`{"action":"create","type":"Issue","data":{"id":%s,"title":"sample"},"webhookTimestamp":`+s.millis()+`,"webhookId":"00000000-0000-4000-8000-000000000001"}`, s.id)
	s.add("Linear-Delivery", s.id)
	s.signBody("Linear-Signature", "", inHex)
	return nil
}

func sampleDiscord(s *sample) error {
	s.body(`{"id":%s,"application_id":"2000","type":2,"token":"sample","version":1,"data":{"id":"1","name":"sample","type":1}}`, s.id)
	if s.unsigned {
		return nil
	}
	signature, err := signWith[ed25519.PrivateKey](s, 0, append([]byte(s.seconds()), s.request.Body...))
	if err != nil {
		return err
	}
	s.add(discordHeader, hex.EncodeToString(signature))
	s.add(discordTime, s.seconds())
	return nil
}

func sampleStandard(s *sample) error {
	s.body(`{"type":"contact.created","timestamp":"`+rfc3339(s.happened)+`","data":{"id":%s}}`, "c_"+s.id)
	return s.standard("msg_" + s.id)
}

func (s *sample) standard(id string) error {
	s.add("webhook-id", id)
	s.add("webhook-timestamp", s.seconds())
	if s.unsigned {
		return nil
	}
	content := id + "." + s.seconds() + "." + string(s.request.Body)
	if bytes.HasPrefix(s.secret, []byte(asymmetricPrefix)) {
		signature, err := signWith[ed25519.PrivateKey](s, 0, []byte(content))
		if err != nil {
			return err
		}
		s.add("webhook-signature", "v1a,"+base64.StdEncoding.EncodeToString(signature))
		return nil
	}
	keys, err := signingSecrets([][]byte{s.secret})
	if err != nil {
		return err
	}
	s.add("webhook-signature", "v1,"+s.keyedSHA256(keys[0], inBase64, content))
	return nil
}

func sampleCloudEvents(s *sample) error {
	s.body(`{"sample":%s}`, s.id)
	s.add("ce-specversion", "1.0")
	s.add("ce-type", "com.example.sample")
	s.add("ce-source", "/hooklock/sample")
	s.add("ce-id", s.id)
	s.add("ce-time", s.rfc3339())
	return nil
}

func sampleSNS(s *sample) error {
	const topic = "arn:aws:sns:us-east-1:123456789012:Sample"
	s.set("Content-Type", "text/plain; charset=UTF-8")
	s.add("x-amz-sns-message-type", "Notification")
	s.add("x-amz-sns-message-id", s.id)
	s.add("x-amz-sns-topic-arn", topic)
	s.add("x-amz-sns-subscription-arn", topic+":00000000-0000-4000-8000-000000000001")
	var signature []byte
	if !s.unsigned {
		signed := "Message\nsample\nMessageId\n" + s.id + "\nTimestamp\n" + s.rfc3339() + "\nTopicArn\n" + topic + "\nType\nNotification\n"
		var err error
		if signature, err = signWith[*rsa.PrivateKey](s, crypto.SHA256, []byte(signed)); err != nil {
			return err
		}
	}
	s.body(`{"Type":"Notification","MessageId":%s,"TopicArn":%s,"Message":"sample","Timestamp":%s,"SignatureVersion":"2","Signature":%s}`,
		s.id, topic, s.rfc3339(), base64.StdEncoding.EncodeToString(signature))
	return nil
}

func samplePubSub(s *sample) error {
	s.body(`{"message":{"data":"c2FtcGxl","messageId":%s,"publishTime":"`+s.rfc3339()+`"},"subscription":"projects/sample/subscriptions/sample"}`, s.id)
	return nil
}

func sampleEventGrid(s *sample) error {
	s.body(`[{"id":%s,"topic":"/subscriptions/sample","subject":"sample","data":{},"eventType":"Sample.Event","eventTime":"`+s.rfc3339()+`","metadataVersion":"1","dataVersion":"1"}]`, s.id)
	s.add("aeg-event-type", "Notification")
	s.add("aeg-subscription-name", "SAMPLE")
	return nil
}
