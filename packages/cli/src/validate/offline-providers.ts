/** What the providers would say of a NodePool, without their clouds. */
import { type InstanceType, type KubeObject, labels, wellKnownLabels } from '@tenon/api'
import { exoscaleInstanceTypes, exoscaleZones } from '@tenon/devcluster'
import type { PoolRules } from '@tenon/operator'
import {
  type ExoscaleNodeClass,
  exoscaleNodeClassKind,
  type FormerField,
  formerFieldsOf,
  publishedInstanceTypes,
} from '@tenon/provider-exoscale'
import { defaultCatalogue, kwokNodeClassKind } from '@tenon/provider-kwok'
import type { Finding } from './problem.ts'

export type ProviderName = 'exoscale' | 'kwok'

/** Instance types that a NodePool may choose from. */
export interface Catalogue {
  /** In the zone that is asked for. */
  readonly offered: readonly InstanceType[]
  /** In any zone. */
  readonly known: readonly InstanceType[]
}

/** A provider's rules and catalogue. */
export interface OfflineProvider {
  readonly name: ProviderName
  readonly nodeClass: { readonly group: string; readonly kind: string }
  readonly rules: PoolRules
  /** The types that pools of a node class choose from; of its defaults when it is not known. */
  readonly typesOf: (nodeClass: KubeObject | undefined) => Catalogue
  /** What a node class says in vain. */
  readonly findingsOf: (nodeClass: KubeObject) => readonly Finding[]
}

export interface CatalogueChoice {
  /** Of Exoscale; every zone counts when it is not given. */
  readonly zone?: string
  /** Of KWOK, in place of the built-in ones. */
  readonly kwokTypes?: readonly InstanceType[]
}

export function offlineProviders({ zone, kwokTypes }: CatalogueChoice): readonly OfflineProvider[] {
  return [exoscale(zone), kwok(kwokTypes ?? defaultCatalogue())]
}

function exoscale(zone: string | undefined): OfflineProvider {
  const typesIn = (zones: readonly string[], nodeClass: KubeObject | undefined): readonly InstanceType[] =>
    zones.flatMap((each) =>
      publishedInstanceTypes(exoscaleInstanceTypes, each, (nodeClass as ExoscaleNodeClass | undefined)?.spec),
    )
  const typesOf = (nodeClass: KubeObject | undefined): Catalogue => {
    const known = typesIn(exoscaleZones, nodeClass)
    return { known, offered: zone === undefined ? known : typesIn([zone], nodeClass) }
  }
  return {
    name: 'exoscale',
    nodeClass: exoscaleNodeClassKind,
    rules: { wellKnownLabels: labelsBeyondTheCore(typesOf(undefined).known) },
    typesOf,
    findingsOf: (nodeClass) => formerFieldsOf((nodeClass as ExoscaleNodeClass).spec).map(formerField),
  }
}

function formerField({ field, message }: FormerField): Finding {
  return { severity: 'warning', field, message: `field of an earlier release: ${message}` }
}

function kwok(types: readonly InstanceType[]): OfflineProvider {
  return {
    name: 'kwok',
    nodeClass: kwokNodeClassKind,
    rules: {
      wellKnownLabels: labelsBeyondTheCore(types),
      restrictedDomains: [kwokNodeClassKind.group],
    },
    typesOf: () => ({ offered: types, known: types }),
    findingsOf: () => [],
  }
}

/** Labels by which the types of a provider differ from each other are known to it. */
function labelsBeyondTheCore(types: readonly InstanceType[]): readonly string[] {
  const keys = new Set(
    types.flatMap(({ requirements, offerings }) =>
      [...requirements, ...offerings.flatMap((offering) => offering.requirements)].map(({ key }) => key),
    ),
  )
  return [...keys].filter((key) => !wellKnownLabels.includes(key) && key !== labels.hostname)
}
