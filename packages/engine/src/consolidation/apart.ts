/** Of moves that were found one by one, those that can be carried out at once. */
import type { Move } from './question.ts'
import type { Candidate, WhatIf } from './what-if.ts'

/** Nodes whose pods are packed again, and how. */
export interface Repacking {
  readonly nodes: readonly Candidate[]
  readonly move: Move
  /** What it saves, less what launches are worth. */
  readonly worth: number
}

interface Budget {
  allows(candidates: readonly Candidate[]): boolean
  spend(candidates: readonly Candidate[]): void
}

/**
 * The move that is worth the most, then others of which each holds whatever becomes of the rest: they touch no node of
 * another, their pods are such about which amounts alone decide, they launch nothing for pods that wait, and have no
 * other place for these. Limits of NodePools are kept by each move, not by all together.
 * @param most moves at most.
 */
export function apart(
  whatIf: WhatIf,
  found: readonly Repacking[],
  budget: Budget,
  most: number,
): readonly Move[] {
  const moves: Move[] = []
  const touched = new Set<number>()
  const homes = new Map<number, number>()
  for (const { nodes, move } of found.toSorted((a, b) => b.worth - a.worth)) {
    if (moves.length === most) break
    const pods = new Set(nodes.flatMap((node) => node.pods))
    const places = placesOf(move)
    const targets = places.flatMap(([pod, node]) => (pods.has(pod) ? [node] : []))
    const touching = [...nodes.map(({ node }) => whatIf.indexOf(node)), ...targets]
    const others = places.filter(([pod]) => !pods.has(pod))
    const isApart =
      moves.length === 0 ||
      (touching.every((node) => !touched.has(node)) &&
        [...pods].every((pod) => whatIf.isPlain(pod)) &&
        move.claims.every((claim) => claim.pods.every((pod) => pods.has(pod))) &&
        others.length === homes.size &&
        others.every(([pod, node]) => homes.get(pod) === node))
    if (!isApart || !budget.allows(nodes)) continue
    if (moves.length === 0) for (const [pod, node] of others) homes.set(pod, node)
    budget.spend(nodes)
    for (const node of touching) touched.add(node)
    moves.push(move)
  }
  return moves
}

/** Pods with the node to which each goes, by index. */
function placesOf({ placements }: Move): readonly (readonly [pod: number, node: number])[] {
  return Array.from({ length: placements.length / 2 }, (_, at) => [
    placements[2 * at] as number,
    placements[2 * at + 1] as number,
  ])
}
