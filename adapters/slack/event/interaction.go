package event

// Action is a button that somebody pressed.
type Action struct {
	ID, Block, Value, TS, Kind string
}

// Interaction is a button, a shortcut or a modal.
type Interaction struct {
	Type        string // block_actions, message_action, view_submission, …
	Callback    string // id of a shortcut or modal
	Team, User  string
	UserTeam    string
	Channel     string
	ChannelName string
	MessageTS   string // of the message with the button, or that the shortcut is for
	Thread      string
	Ephemeral   bool
	Trigger     string
	ResponseURL string
	ActionTS    string
	View        string
	Actions     []Action
	Message     Message // of a shortcut
}

// ParseInteraction reads an interaction.
func ParseInteraction(payload []byte) (Interaction, error) {
	f, err := Read(payload)
	if err != nil {
		return Interaction{}, err
	}
	container, user, channel, msg := f.Object("container"), f.Object("user"), f.Object("channel"), f.Object("message")
	in := Interaction{
		Type: f.String("type"), Callback: f.String("callback_id"), Team: f.Object("team").String("id"),
		User: user.String("id"), UserTeam: user.String("team_id"), Channel: channel.String("id"), ChannelName: channel.String("name"),
		MessageTS: f.String("message_ts"), Trigger: f.String("trigger_id"), ResponseURL: f.String("response_url"),
		ActionTS: f.String("action_ts"), View: f.Object("view").String("id"), Ephemeral: container.Bool("is_ephemeral"),
		Message: message(msg),
	}
	if in.MessageTS == "" {
		in.MessageTS = container.String("message_ts")
	}
	if in.Channel == "" {
		in.Channel = container.String("channel_id")
	}
	if in.Callback == "" {
		in.Callback = f.Object("view").String("callback_id")
	}
	in.Thread = container.String("thread_ts")
	if in.Thread == "" {
		in.Thread = msg.String("thread_ts")
	}
	for _, a := range f.Objects("actions") {
		in.Actions = append(in.Actions, Action{
			ID: a.String("action_id"), Block: a.String("block_id"), Value: a.String("value"), TS: a.String("action_ts"), Kind: a.String("type"),
		})
	}
	return in, nil
}

// Command is a slash command.
type Command struct {
	Name, Text  string
	Team, User  string
	Channel     string
	ChannelName string
	Trigger     string
	ResponseURL string
}

// ParseCommand reads a command that came as JSON.
func ParseCommand(payload []byte) (Command, error) {
	f, err := Read(payload)
	if err != nil {
		return Command{}, err
	}
	return CommandOf(f.String), nil
}

// CommandOf reads a command from its fields, whatever form they came in.
func CommandOf(get func(string) string) Command {
	return Command{
		Name: get("command"), Text: get("text"), Team: get("team_id"), User: get("user_id"), Channel: get("channel_id"),
		ChannelName: get("channel_name"), Trigger: get("trigger_id"), ResponseURL: get("response_url"),
	}
}
