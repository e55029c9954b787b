import type { UselessNode } from './node-evidence.ts'

/** Why a node was useless for pods like one, and what happens now. */
export function uselessText(entry: UselessNode): string {
  const why =
    entry.cause === 'unused'
      ? 'ended without having run it'
      : 'has room for it, but the scheduler rejects the pod there'
  const words = entry.words === '' ? '' : `: ${entry.words}`
  const then =
    entry.untilMs <= entry.atMs
      ? 'another node may be launched'
      : `no other node of NodePool ${entry.nodePool} is launched for such pods before ${new Date(entry.untilMs).toISOString().replace(/\.\d+Z$/, 'Z')}`
  return `Node ${entry.node} (NodeClaim ${entry.claim}) was launched for pod ${entry.pod} and ${why}; ${then}${words}`
}
