/** Shell scripts that call `tenon __complete`. */

export const shells = ['bash', 'zsh', 'fish', 'powershell'] as const

export type Shell = (typeof shells)[number]

/** Sourced by the shell. */
export const completionScripts: Readonly<Record<Shell, string>> = {
  bash: `# bash completion of tenon: source <(tenon completion bash)
_tenon() {
  local IFS=$'\\n'
  COMPREPLY=($(tenon __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _tenon tenon
`,
  zsh: `#compdef tenon
# zsh completion of tenon: source <(tenon completion zsh)
_tenon() {
  local -a found
  found=("\${(@f)$(tenon __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -- $found
}
compdef _tenon tenon
`,
  fish: `# fish completion of tenon: tenon completion fish | source
function __tenon_complete
  set -l words (commandline -opc) (commandline -ct)
  tenon __complete -- $words[2..-1] 2>/dev/null
end
complete -c tenon -f -a '(__tenon_complete)'
`,
  powershell: `# PowerShell completion of tenon: tenon completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName tenon -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $words = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
  if ($wordToComplete -eq '') { $words += '""' }
  tenon __complete -- @words 2>$null | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }
}
`,
}
