/** Offerings that a NodePool allows but that are unavailable. */
import { labels, type PricePerHour, type Unavailability } from '@tenon/api'
import type { UnavailableOffering } from '../../reasons/reasons.ts'
import { compatible, parseRequirements, type Requirements } from '../../requirements/requirements.ts'
import { allocatableGroups } from '../types/allocatable.ts'
import { type CompiledType, meets } from '../types/instance-rows.ts'
import type { PodShape } from '../pods/pod-shape.ts'
import {
  type CompiledPool,
  type DaemonLoad,
  daemonLoads,
  roomOn,
  type TemplateContext,
} from './pool-template.ts'
import { portsClash } from '../../input/host-ports.ts'
import { type Amounts, amountsFit } from '../pods/resource-space.ts'

/** An unavailable offering with the room of its nodes. */
export interface UnavailableRow {
  readonly type: CompiledType
  readonly requirements: Requirements
  readonly pricePerHour: PricePerHour
  readonly unavailability: Unavailability | undefined
  /** Amounts for pods, minus daemon pods. */
  readonly room: Amounts
  readonly daemons: DaemonLoad
}

/** All unavailable offerings of the pool. */
export function unavailableRowsOf(pool: CompiledPool, context: TemplateContext): readonly UnavailableRow[] {
  const { policy } = context
  const loadOn = daemonLoads(pool, context)
  return pool.types.flatMap((type) => {
    const closed = type.type.offerings.filter(({ available }) => !available)
    if (closed.length === 0 || !meets(type, pool.requirements)) return []
    const groups = allocatableGroups({
      ...type.type,
      offerings: closed.map((offering) => ({ ...offering, available: true })),
    })
    return groups.flatMap(({ allocatable, offerings }) => {
      if (Object.values(allocatable).some((amount) => amount < 0)) return []
      const daemons = loadOn(type)
      const room = roomOn({ type, allocatable, daemons }, pool, context)
      return offerings.flatMap((offering): readonly UnavailableRow[] => {
        const { requirements: stated, pricePerHour, unavailability } = offering
        const requirements = parseRequirements(stated)
        if (!compatible(pool.requirements, requirements, policy.wellKnownLabels)) return []
        return [{ type, requirements, pricePerHour, unavailability, room, daemons }]
      })
    })
  })
}

/** Those that fit a claim with these requirements. */
export function suiting(
  unavailableRows: readonly UnavailableRow[],
  requirements: Requirements,
  wellKnown: ReadonlySet<string>,
): readonly UnavailableRow[] {
  return unavailableRows.filter(
    (each) => meets(each.type, requirements) && compatible(requirements, each.requirements, wellKnown),
  )
}

/** Those with room for the pod. */
export function holding(
  unavailableRows: readonly UnavailableRow[],
  shape: PodShape,
): readonly UnavailableRow[] {
  return unavailableRows.filter(
    ({ room, daemons }) =>
      amountsFit(shape.amounts, room) &&
      (shape.hostPorts.length === 0 || !portsClash(shape.hostPorts, daemons.ports)),
  )
}

/** As part of a reason. */
export function unavailableOfferings(
  unavailableRows: readonly UnavailableRow[],
): readonly UnavailableOffering[] {
  return unavailableRows.map(({ type, requirements, unavailability }) => ({
    instanceType: type.type.name,
    zone: onlyValue(requirements, labels.zone),
    capacityType: onlyValue(requirements, labels.capacityType),
    ...(unavailability !== undefined && { unavailability }),
  }))
}

function onlyValue(requirements: Requirements, key: string): string {
  return requirements.get(key)?.values.values().next().value ?? ''
}
