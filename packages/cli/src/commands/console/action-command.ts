/** Actions as commands for a POSIX shell; the page shows the command that does the same. */
import type { Action, SimulatedChanges } from '@tenon/console'
import type { ClusterFlags, SourceFlags } from '../../kubectl/flags.ts'

export interface ActionFlags extends ClusterFlags {
  /** Time limit of a drain, in milliseconds. */
  readonly drainTimeout: number
}

export function commandOf(action: Action, flags: ActionFlags): string {
  switch (action.kind) {
    case 'cordon':
    case 'uncordon':
      return command(flags, 'kubectl', action.kind, action.node)
    case 'drain': {
      const limit = `--timeout=${flags.drainTimeout / 1000}s`
      return command(flags, 'kubectl drain', action.node, '--ignore-daemonsets --delete-emptydir-data', limit)
    }
    case 'pause':
    case 'resume':
      return command(
        flags,
        'tenon',
        action.kind,
        ...(action.nodePool === undefined ? [] : [`nodepool/${action.nodePool}`]),
      )
    case 'delete': {
      const { kind, name, namespace } = action.target
      const where = namespace === undefined ? [] : ['-n', namespace]
      return command(flags, 'kubectl delete', kind, name, ...where, '--wait=false')
    }
  }
}

/** The words of a command, with the flags that select the cluster. */
export function command({ context, kubeconfig }: ClusterFlags, ...words: readonly string[]): string {
  const where = Object.entries({ kubeconfig, context }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, quoted(value)],
  )
  return [...words, ...where].join(' ')
}

/** `tenon simulate` with the changes; manifests come from standard input. */
export function simulateCommand(
  { catalogue, controller, snapshot, ...cluster }: SourceFlags,
  { manifests, scales }: SimulatedChanges,
  forMs: number | undefined,
): string {
  const flags = Object.entries({ snapshot, catalogue, controller }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, quoted(value)],
  )
  const line = command(
    cluster,
    'tenon simulate',
    ...scales.flatMap((scale) => ['--scale', quoted(scale)]),
    ...(forMs === undefined ? [] : [`--for ${forMs}ms`]),
    ...flags,
    ...(manifests.trim() === '' ? [] : ['-f /dev/stdin']),
  )
  if (manifests.trim() === '') return line
  const lines = new Set(manifests.split('\n'))
  let end = 'END'
  while (lines.has(end)) end += 'S'
  return `${line} <<'${end}'\n${manifests.replace(/\n*$/, '')}\n${end}`
}

/** Quotes a word for a POSIX shell. */
export function quoted(text: string): string {
  return /^[\w./=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
