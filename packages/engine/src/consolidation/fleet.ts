/** The nodes and pods of a cluster that are placed by resources alone, as the search for the cheapest end state sees them. */
import { labels, ownValue, type Resources } from '@tenon/api'
import type { ClaimClass } from '../scheduling/claims/claim-class.ts'
import { undominated } from '../scheduling/packing/packing.ts'
import { resourcePrices } from '../scheduling/packing/resource-prices.ts'
import type { PodShape } from '../scheduling/pods/pod-shape.ts'
import type { TypeRow } from '../scheduling/claims/pool-template.ts'
import { type Amounts, addTo } from '../scheduling/pods/resource-space.ts'
import { fitScoreOf, type Host, type Layout, type PodKind, resourceScore } from './scheduler-model.ts'
import type { Candidate, WhatIf } from './what-if.ts'

/** The most nodes of one search; in a larger cluster, the most wasteful ones. */
const mostNodes = 200
/** The most waves in which pods move, the largest pods first. */
const mostWaves = 8

interface Kind extends PodKind {
  readonly shape: PodShape
  /** 0 for those that move first. */
  readonly wave: number
}

/** A node that pods may go to; it may be removed if it is a candidate. */
export interface Instance extends Host {
  /** Index in the problem. */
  readonly index: number
  readonly candidate?: Candidate
  readonly pricePerHour: number
  /** Pods of each kind that move if it is removed. */
  readonly pods: readonly (readonly number[])[]
  readonly moving: Int32Array
}

/** A type that may be launched. */
export interface Launchable extends Host {
  readonly row: TypeRow
  readonly pricePerHour: number
}

export interface Fleet {
  readonly kinds: readonly Kind[]
  readonly layout: Layout
  readonly instances: readonly Instance[]
  readonly types: readonly Launchable[]
  /** The class of claims for the pods; absent when nothing can be launched. */
  readonly class?: ClaimClass
  /** Pending pods of each kind. */
  readonly waiting: readonly (readonly number[])[]
  /** Whether the fleet contains all candidates with pods. */
  readonly isWhole: boolean
}

/** @returns undefined when every candidate has pods that are not placed by resources alone. */
export function fleetOf(whatIf: WhatIf): Fleet | undefined {
  const { compiled } = whatIf
  const removable = whatIf.candidates
    .filter(
      ({ input, pods, node }) =>
        // A node of unknown price cannot be compared with others.
        input.pricePerHour !== undefined &&
        node.input.initialized &&
        pods.length > 0 &&
        pods.every((pod) => whatIf.isPlain(pod)),
    )
    .map((candidate) => ({ candidate, waste: wasteOf(candidate) }))
    .toSorted((a, b) => b.waste - a.waste || (a.candidate.input.node < b.candidate.input.node ? -1 : 1))
    .slice(0, mostNodes)
    .map(({ candidate }) => candidate)
  if (removable.length === 0) return undefined
  const waiting = whatIf.podsWithoutNode.filter((pod) => whatIf.isPlain(pod))
  const shapes = new Set(
    [...removable.flatMap(({ pods }) => pods), ...waiting].map((pod) => compiled.shapeOf(pod)),
  )
  const { balance = 'use', fitScoring } = compiled.problem.policy
  const positionOf = (resource: string) => compiled.space.indexOf(resource)
  const fit = fitScoring && fitScoreOf(fitScoring, positionOf)
  const layout = { cpu: positionOf('cpu'), memory: positionOf('memory'), balance, ...(fit && { fit }) }
  if (layout.cpu < 0 || layout.memory < 0) return undefined
  const ofClass = commonClass(whatIf, [...shapes])
  const rows = ofClass === undefined ? [] : rowsOf(whatIf, ofClass)
  const kinds = kindsOf(whatIf, shapes, removable, rows)
  const indexes = new Map(kinds.map(({ shape }, index) => [shape, index]))
  const byKind = (pods: readonly number[]): readonly (readonly number[])[] => {
    const lists = kinds.map((): number[] => [])
    for (const pod of pods) lists[indexes.get(compiled.shapeOf(pod)) ?? -1]?.push(pod)
    return lists
  }
  const scoresOf = (total: Host['total'], free: Amounts, suits: (kind: Kind) => boolean = () => true) => {
    const scores = new Float64Array(kinds.length)
    for (const [index, kind] of kinds.entries()) {
      const score = resourceScore(kind.amounts, layout, total, free)
      const isOpen = score > Number.NEGATIVE_INFINITY && suits(kind)
      scores[index] = isOpen ? score : Number.NEGATIVE_INFINITY
    }
    return scores
  }
  const zones = new Map<string, number>()
  const zoneOf = (zone = '') => {
    if (!zones.has(zone)) zones.set(zone, zones.size)
    return zones.get(zone) as number
  }
  const going = new Map(removable.map((candidate) => [candidate.node, candidate]))
  const others = whatIf.nodes.all
    .filter((node) => !going.has(node) && node.input.initialized && !node.takesNothing)
    .slice(0, mostNodes - removable.length)
  const instances = [...going.keys(), ...others].map((node): Instance => {
    const candidate = going.get(node)
    const pods = byKind(candidate?.pods ?? [])
    const moving = new Int32Array(pods.map(({ length }) => length))
    const known = fit === undefined ? candidate?.input.capacity : node.input.allocatable
    const total = totalOf(compiled.space.vector(known ?? node.input.available), layout)
    return {
      index: whatIf.indexOf(node),
      ...(candidate && { candidate }),
      pricePerHour: candidate?.input.pricePerHour ?? 0,
      free: node.remaining.slice(),
      total,
      zone: zoneOf(node.input.labels[labels.zone]),
      counts: moving,
      scores: scoresOf(total, node.remaining, ({ shape }) => whatIf.nodes.suits(node, shape)),
      pods,
      moving,
    }
  })
  const none = new Int32Array(kinds.length)
  const types = rows.map(({ row, pricePerHour }): Launchable => {
    const known = fit === undefined ? row.capacity : compiled.space.vector(row.group.allocatable)
    const total = totalOf(known, layout)
    return {
      row,
      pricePerHour,
      free: row.room,
      total,
      zone: 0,
      counts: none,
      scores: scoresOf(total, row.room),
    }
  })
  return {
    kinds,
    layout: { ...layout, zones: Math.max(1, zones.size) },
    instances,
    types,
    ...(ofClass && { class: ofClass }),
    waiting: byKind(waiting),
    isWhole: removable.length === whatIf.candidates.filter(({ pods }) => pods.length > 0).length,
  }
}

function totalOf(amounts: Amounts, { cpu, memory, fit }: Omit<Layout, 'zones'>): Host['total'] {
  const scored = fit?.resources.map(({ at }) => amounts[at] ?? 0) ?? []
  return [Math.max(1, amounts[cpu] ?? 0), Math.max(1, amounts[memory] ?? 0), ...scored]
}

/** The price per hour of unused room: the price times the free share of the resource that is used most. */
export function wasteOf({ input, node }: Candidate): number {
  return (input.pricePerHour ?? 0) * (1 - usedShare(input.capacity, node.input.available))
}

/** A node keeps its amounts object between searches as long as its pods do not change. */
const usedShares = new WeakMap<Resources, { readonly capacity: Resources; readonly used: number }>()

/** The used share of the resource that is used most, from 0 to 1. */
function usedShare(capacity: Resources, available: Resources): number {
  const known = usedShares.get(available)
  if (known?.capacity === capacity) return known.used
  let used = 0
  for (const [name, total] of Object.entries(capacity)) {
    const free = ownValue(available, name)
    if (free === undefined || total <= 0 || name === 'pods') continue
    used = Math.max(used, 1 - free / total)
  }
  usedShares.set(available, { capacity, used })
  return used
}

/** The claim class that all these shapes have in common, if it has neither minValues nor reservations. */
function commonClass(whatIf: WhatIf, shapes: readonly PodShape[]): ClaimClass | undefined {
  const classes = whatIf.without([], (simulation) => ({
    ending: 'undo',
    value: new Set(shapes.map((shape) => simulation.classFor(shape))),
  }))
  const [first] = classes
  return classes.size === 1 && first !== undefined && !first.hasMinValues && !first.hasReservations
    ? first
    : undefined
}

function rowsOf(
  { compiled }: WhatIf,
  ofClass: ClaimClass,
): readonly { row: TypeRow; pricePerHour: number }[] {
  const priced = compiled.finisher
    .priced(ofClass)
    .flatMap(({ row, pricePerHour }) =>
      pricePerHour !== undefined && row.room.every((amount) => amount >= 0) ? [{ row, pricePerHour }] : [],
    )
  const bins = priced.map(({ row, pricePerHour }) => ({ room: row.room, pricePerHour }))
  return undominated(bins).flatMap((index) => priced[index] ?? [])
}

/** The kinds of pods, the hardest to place first. */
function kindsOf(
  { compiled }: WhatIf,
  shapes: ReadonlySet<PodShape>,
  removable: readonly Candidate[],
  rows: readonly { readonly row: TypeRow; readonly pricePerHour: number }[],
): readonly Kind[] {
  const demand = new Float64Array(compiled.space.size)
  for (const { pods } of removable) for (const pod of pods) addTo(demand, compiled.shapeOf(pod).amounts)
  const bins =
    rows.length > 0
      ? rows.map(({ row, pricePerHour }) => ({ room: row.room, pricePerHour }))
      : removable.map(({ input }) => ({
          room: compiled.space.vector(input.capacity),
          pricePerHour: input.pricePerHour ?? 0,
        }))
  const { prices } = resourcePrices(bins, demand)
  const worthOf = (amounts: Amounts) =>
    amounts.reduce((sum, amount, i) => sum + amount * (prices[i] as number), 0)
  const largest = demand.map((_, i) =>
    Math.max(1e-9, ...[...shapes].map(({ amounts }) => amounts[i] as number)),
  )
  const sizeOf = ({ amounts }: PodShape) =>
    amounts.reduce(
      (size, amount, i) =>
        (demand[i] as number) > 0 && prices[i] !== 0 ? Math.max(size, amount / (largest[i] as number)) : size,
      0,
    )
  const sized = [...shapes]
    .map((shape) => ({ shape, size: sizeOf(shape), worth: worthOf(shape.amounts) }))
    .toSorted((a, b) => b.size - a.size || b.worth - a.worth || a.shape.index - b.shape.index)
  const sizes = [...new Set(sized.map(({ size }) => size))]
  return sized.map(({ shape, size, worth }) => ({
    shape,
    amounts: shape.amounts,
    worth: Math.max(worth, 1e-6),
    wave: Math.floor((sizes.indexOf(size) * Math.min(mostWaves, sizes.length)) / sizes.length),
  }))
}
