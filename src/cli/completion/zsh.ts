import type { Flag, Word, Words } from './words.js'

export function zshCompletion({ commands, flags, after }: Words): string {
  const followers = [...after].filter(([, words]) => words.length > 0)
  return `#compdef platform-auth-server
# Completion of platform-auth-server for zsh. In ~/.zshrc, after compinit:
#   source <(platform-auth-server completion zsh)
# or as a file named _platform_auth_server in a folder of $fpath.
_platform_auth_server() {
  local context state state_descr line
  typeset -A opt_args
  local -a commands=(
${commands.map(command => `    ${described(command)}`).join('\n')}
  )
  _arguments -C \\
${flags.map(flag => `    ${flagSpec(flag)} \\`).join('\n')}
    '1:command:->command' \\
    '*:word:->word'
  case $state in
    command) _describe command commands ;;
    word)
      case $line[1] in
${followers.map(([name, words]) => `        ${name}) compadd -- ${words.join(' ')} ;;`).join('\n')}
      esac ;;
  esac
}
if [[ $funcstack[1] == _platform_auth_server ]]; then
  _platform_auth_server "$@"
else
  compdef _platform_auth_server platform-auth-server
fi
`
}

function described({ name, summary }: Word): string {
  return quoted(`${name}:${summary.replaceAll(':', '\\:')}`)
}

function flagSpec({ name, summary, value }: Flag): string {
  const about = `${name}[${summary.replace(/[[\]:\\]/g, '\\$&')}]`
  return quoted(value === 'none' ? about : `${about}:value:${source(value)}`)
}

function source(value: Exclude<Flag['value'], 'none'>): string {
  if (value === 'file') return '_files'
  if (value === 'folder') return '_files -/'
  return value === 'other' ? ' ' : `(${value.join(' ')})`
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
