/** Which moves of a search can be executed at the same time. */
import type { Move } from './question.ts'
import type { Candidate, WhatIf } from './what-if.ts'

/** Nodes and the move that packs their pods again. */
export interface Repacking {
  readonly nodes: readonly Candidate[]
  readonly move: Move
  /** Its savings per hour, minus a share for each launch. */
  readonly worth: number
}

interface Budget {
  allows(candidates: readonly Candidate[]): boolean
  spend(candidates: readonly Candidate[]): void
}

/**
 * The most valuable move, and other moves that are independent of it and of each other: they share no node, their pods
 * are placed by resources alone, and they neither launch nodes for pending pods nor use room that these need. Each move
 * keeps the limits of NodePools by itself, not all of them together.
 * @param most moves at most.
 */
export function independentMoves(
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
