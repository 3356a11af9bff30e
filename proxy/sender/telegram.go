package sender

import (
	"hash/crc32"
	"strconv"
	"time"

	"hooklock/idem"
)

// Telegram returns the preset of Telegram.
func (known) Telegram() Preset {
	return Preset{
		Name: "telegram", EventID: "{body.update_id}", OnMismatch: idem.MismatchExecute,
		Facts: Facts{
			Retries: RetriesAll, RetriesFor: 23 * time.Hour, UsesAnswer: usesEveryAnswer,
			Answer: "Telegram carries out a method in its body, such as sendMessage",
			RetriesOn: "after every answer but 2xx, \"a reasonable amount of attempts\"; the Bot API server drops " +
				"an update after 23 h",
		},
		verify: asToken("header." + telegramHeader),
		Page: Page{
			Title: "Telegram", Path: "/hooks/telegram/{bot}",
			Workflow: `telegram/{path.bot}/{body.message.chat.id ?? body.callback_query.from.id ?? "other"}`,
			Secret:   "The `secret_token` that you gave to setWebhook.",
		},
		Sources: []string{"https://core.telegram.org/bots/api#setwebhook",
			"https://core.telegram.org/bots/api#making-requests-when-getting-updates",
			"tdlib/telegram-bot-api telegram-bot-api/WebhookActor.h"},
		Notes: []string{
			"Whoever knows the secret can make any update.",
			"update_id is unique for one bot: give each bot its own route.",
			"A duplicate gets the first answer, so Telegram may carry out its method again.",
		},
		sample: func(s *sample) {
			number := strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(s.id))), 10)
			s.setBody(`{"update_id":`+number+`,"message":{"message_id":1,"date":`+strconv.FormatInt(s.happened.Unix(), 10)+
				`,"chat":{"id":1,"type":"private"},"text":%s}}`, s.id)
			s.addSigned(telegramHeader, string(s.secret))
		},
	}
}

const telegramHeader = "X-Telegram-Bot-Api-Secret-Token"
