/** `tenon __complete`: returns completions to shells. Prints nothing if it has none. */
import { kinds } from '@tenon/api'
import type { Command } from 'commander'
import { type ClusterNames, candidates } from './candidates.ts'
import type { Io } from '../../io.ts'
import { namespaceOf, onCluster } from '../../kubectl/connection.ts'

/** Nobody waits longer for a completion. */
const requestTimeout = 2000
/** A longer list is of no use. */
const mostNames = 200

export async function runComplete(io: Io, program: Command, words: readonly string[]): Promise<void> {
  // PowerShell passes an empty word like this.
  const given = words.map((word) => (word === '""' ? '' : word))
  for (const each of await candidates(program, given, clusterNames(io, given))) io.out(`${each}\n`)
}

function clusterNames(io: Io, words: readonly string[]): ClusterNames {
  const [namespace, context, kubeconfig] = [
    valueOf(words, '-n', '--namespace'),
    valueOf(words, '--context'),
    valueOf(words, '--kubeconfig'),
  ]
  const flags = {
    requestTimeout,
    ...(context !== undefined && { context }),
    ...(kubeconfig !== undefined && { kubeconfig }),
  }
  const listed = async (type: Parameters<ClusterNames['objects']>[0]['type']) => {
    try {
      return await onCluster(io, flags, async (connection) => {
        const chosen = namespaceOf(namespace === undefined ? {} : { namespace }, connection)
        const scope = type.namespaced && chosen !== undefined ? { namespace: chosen } : {}
        const { items } = await connection.client.listing(type, scope, ({ metadata }) => metadata.name)
        return items.slice(0, mostNames)
      })
    } catch {
      // A completing shell must not print errors.
      return []
    }
  }
  return { objects: ({ type }) => listed(type), namespaces: () => listed(kinds.namespace) }
}

function valueOf(words: readonly string[], ...flags: readonly string[]): string | undefined {
  const at = words.findLastIndex((word) => flags.includes(word))
  return at === -1 ? undefined : words[at + 1]
}
