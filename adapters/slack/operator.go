package slack

import "fmt"

// Self names the bot and its workspace for an operator, "" until Slack has said
// who it is.
func (a *Adapter) Self() string {
	me := a.self.Load()
	if me == nil {
		return ""
	}
	return fmt.Sprintf("bot %s of workspace %s", me.User, me.team)
}
