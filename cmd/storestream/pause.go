package main

import (
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func pauseCommand(env *environment) *cobra.Command {
	var length time.Duration
	o := order{Request: watermark.Request{Kind: watermark.Pauses}, what: "a pause"}
	cmd := &cobra.Command{
		Use:       "pause RESOURCE...",
		ValidArgs: schemas.Names(),
		Args:      resourceArgs(0, math.MaxInt),
		Short:     "Stop publishing a resource for a while",
		Long: `Asks the running instance to stop reading and publishing the resource: polls, sweeps, erases and
replays wait. With --for it goes on by itself after that time, otherwise with storestream resume. The pause
outlives restarts and handovers. The state is paused everywhere, which is no failure, and the resource is not
up to date. The lag grows. An alert tells of a long pause. Afterwards the first poll publishes the changes.

A pause that is asked for during another one takes its place.`,
		Example: "  storestream pause users --for 2h\n  storestream pause users --why migration --yes",
	}
	cmd.Flags().DurationVar(&length, "for", 0,
		"end the pause after this `TIME`, such as 2h")
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if length < 0 || length == 0 && cmd.Flags().Changed("for") {
			return usagef(cmd, "--for %s: expected more than 0", length)
		}
		question := "Stop publishing it until storestream resume?"
		if length > 0 {
			until := schemas.InstantOf(time.Now().Add(length))
			o.To, o.what, question = &until, "a pause until "+until.String(), "Stop publishing it until then?"
		}
		return o.send(env, cmd, unique(args), question, nil)
	}
	return cmd
}

func resumeCommand(env *environment) *cobra.Command {
	o := order{Request: watermark.Request{Kind: watermark.Resumes}, what: "an end of its pause"}
	cmd := &cobra.Command{
		Use:       "resume RESOURCE...",
		ValidArgs: schemas.Names(),
		Args:      resourceArgs(0, math.MaxInt),
		Short:     "End the pause of a resource",
		Long: `Asks the running instance to go on with a resource that storestream pause has paused. It polls at
once, and goes on with the sweeps, erases and replays that waited.`,
		Example: "  storestream resume users",
	}
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.send(env, cmd, unique(args), "Go on with it?", nil)
	}
	return cmd
}
