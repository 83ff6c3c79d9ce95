import type { Flag, Words } from './words.js'

export function bashCompletion({ commands, flags, after }: Words): string {
  const names = commands.map(({ name }) => name)
  const followers = [...after].filter(([, words]) => words.length > 0)
  return `# Completion of platform-auth-server for bash. In ~/.bashrc:
#   source <(platform-auth-server completion bash)
_platform_auth_server() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} command= index
  for ((index = 1; index < COMP_CWORD; index++)); do
    case \${COMP_WORDS[index]} in
      ${names.join(' | ')}) command=\${COMP_WORDS[index]} ;;
    esac
  done
  COMPREPLY=()
  case $before in
${flags.flatMap(flag => afterFlag(flag)).join('\n')}
  esac
  local words=
  case $command in
    '') words='${names.join(' ')}' ;;
${followers.map(([name, words]) => `    ${name}) words='${words.join(' ')}' ;;`).join('\n')}
  esac
  if [[ $word == -* ]]; then words+=' ${flags.map(({ name }) => name).join(' ')}'; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _platform_auth_server platform-auth-server
`
}

function afterFlag({ name, value }: Flag): string[] {
  if (value === 'none') return []
  if (value === 'other') return [`    ${name}) return ;;`]
  const source = value === 'file' ? '-f' : value === 'folder' ? '-d' : `-W '${value.join(' ')}'`
  return [`    ${name}) COMPREPLY=($(compgen ${source} -- "$word")); return ;;`]
}
