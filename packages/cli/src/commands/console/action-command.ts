/** The command of an action, for a POSIX shell: what is done is what it does. */
import type { Action } from '@tenon/console'
import type { ClusterFlags } from '../../kubectl/flags.ts'

/** Actions on a cluster, as they are carried out. */
export interface ActionFlags extends ClusterFlags {
  /** How long a drain tries, in milliseconds. */
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

/** The words of a command, and which cluster it is for. */
export function command({ context, kubeconfig }: ClusterFlags, ...words: readonly string[]): string {
  const where = Object.entries({ kubeconfig, context }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, quoted(value)],
  )
  return [...words, ...where].join(' ')
}

/** For a POSIX shell. */
export function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
