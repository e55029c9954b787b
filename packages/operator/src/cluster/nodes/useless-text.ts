import type { UselessNode } from './node-evidence.ts'

/** Why a node is useless for pods like one, and what happens now. */
export function uselessText(entry: UselessNode, short: readonly string[] = []): string {
  const why =
    entry.cause === 'short'
      ? `has less ${short.length === 0 ? 'room' : short.join(', ')} than its instance type promised`
      : 'is ready, but the scheduler rejects the pod for it'
  const words = entry.words === '' ? '' : `: ${entry.words}`
  const then =
    entry.untilMs <= entry.atMs
      ? 'the next decision uses that'
      : `no other node is launched for such pods before ${new Date(entry.untilMs).toISOString().replace(/\.\d+Z$/, 'Z')}`
  return `Node ${entry.node} (NodeClaim ${entry.claim}) was launched for pod ${entry.pod} and ${why}; ${then}${words}`
}
