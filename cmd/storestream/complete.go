package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/schemas"
)

// completionExamples are examples for the help of completion and of its shells. They create the folder in
// which a shell looks for completions, because a new home has none.
var completionExamples = map[string]string{
	"completion": "  source <(storestream completion bash)  # for this shell",
	"bash": `  source <(storestream completion bash)  # for this shell
  echo 'source <(storestream completion bash)' >> ~/.bashrc  # for new ones`,
	"zsh": `  autoload -U compinit && compinit && source <(storestream completion zsh)  # for this shell
  echo 'autoload -U compinit && compinit && source <(storestream completion zsh)' >> ~/.zshrc` +
		"  # for new ones",
	"fish": `  storestream completion fish | source  # for this shell
  mkdir -p ~/.config/fish &&` +
		` echo 'storestream completion fish | source' >> ~/.config/fish/config.fish  # for new ones`,
	"powershell": "  storestream completion powershell | Out-String | Invoke-Expression  # for this shell",
}

// addCompletion adds the commands that print the completions of a shell. Cobra would add them itself when
// root runs, without examples. root must have its output by now, because they keep it.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"}) // it is there now
	for _, cmd := range append(completion.Commands(), completion) {
		cmd.Example = completionExamples[cmd.Name()]
	}
}

// withoutQuotes removes backquotes from the flags' texts that a shell shows. They mark the name of a flag's
// value for --help.
func withoutQuotes(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	for _, sub := range cmd.Commands() {
		withoutQuotes(sub)
	}
}

// completeResources offers the resources that a command line does not name yet.
func completeResources(_ *cobra.Command, named []string, _ string) ([]string, cobra.ShellCompDirective) {
	left := slices.DeleteFunc(schemas.Names(), func(name string) bool { return slices.Contains(named, name) })
	return left, cobra.ShellCompDirectiveNoFileComp
}

// completeResource offers the resources as the first argument.
func completeResource(cmd *cobra.Command, named []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(named) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeResources(cmd, named, typed)
}

// completeKeys offers the keys of the configuration, as in --set log.level=.
func completeKeys(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	defaults, err := config.Load(config.Input{})
	if err != nil { // never: the defaults hold no mistake
		return nil, directive
	}
	var keys []string
	for _, e := range defaults.Entries() {
		if strings.HasPrefix(e.Key, typed) {
			keys = append(keys, e.Key+"=")
		}
	}
	return keys, directive
}
