/** Annotations of a KWOKNodeClass that simulate failures; none by default. */
import {
  type InstanceType,
  labels,
  mostPricePerHour,
  type Offering,
  parseDuration,
  ownValue,
} from '@tenon/api'
import type { OfferingRef } from '@tenon/provider'
import type { KwokNodeClass } from './nodeclass.ts'

/** Prefix of the annotations. */
const simulationPrefix = 'simulation.karpenter.kwok.sh/'

/** Offerings by type, zone and capacity type; absent parts match all. */
type Selector = Partial<OfferingRef>

/** What the annotations of a node class request. */
export interface FailureSettings {
  /** Share of launches, 0 to 1, that fail for lack of capacity. */
  readonly capacityErrors: number
  /** Launches of these offerings fail, although the catalogue lists them as available. */
  readonly outages: readonly Selector[]
  /** The catalogue lists these offerings as unavailable. */
  readonly unavailable: readonly Selector[]
  /** Factors on prices; all factors that match an offering are multiplied. */
  readonly prices: readonly { readonly selector: Selector; readonly factor: number }[]
  /** The image of new instances; instances with another image have drifted. */
  readonly image: string | undefined
  /** How long an instance continues to exist after its deletion was accepted. */
  readonly terminationDelayMs: number
  /** How long after a Node its devices are published. */
  readonly deviceDelayMs: number
  /** Maximum launches and deletions per second; others are throttled. */
  readonly rateLimit: number | undefined
  /** The share of its type's resources that an instance has, 0 to 1, by resource; default 1. */
  readonly instanceShares: ReadonlyMap<string, number>
}

/** Settings, and for each invalid annotation what is expected. */
export interface FailureReading {
  readonly settings: FailureSettings
  readonly problems: readonly string[]
}

const nothing: FailureSettings = {
  capacityErrors: 0,
  outages: [],
  unavailable: [],
  prices: [],
  image: undefined,
  terminationDelayMs: 0,
  deviceDelayMs: 0,
  rateLimit: undefined,
  instanceShares: new Map(),
}

const selectorForm = 'type=NAME,zone=NAME,capacity-type=NAME (any of them), or all'
const selectorParts: Readonly<Record<string, keyof OfferingRef>> = {
  type: 'instanceType',
  zone: 'zone',
  'capacity-type': 'capacityType',
}

interface Setting {
  /** Parses the annotation; undefined if it is invalid. */
  readonly read: (text: string) => Partial<FailureSettings> | undefined
  readonly form: string
}

const settings: Readonly<Record<string, Setting>> = {
  'capacity-errors': {
    read: (text) => {
      const percent = /^(\d+(?:\.\d+)?)%$/.exec(text)?.[1]
      return percent === undefined || Number(percent) > 100
        ? undefined
        : { capacityErrors: Number(percent) / 100 }
    },
    form: 'a share of 0% to 100%',
  },
  outages: {
    read: (text) => {
      const outages = listOf(text, selectorOf)
      return outages && { outages }
    },
    form: `offerings separated by ";", each as ${selectorForm}`,
  },
  unavailable: {
    read: (text) => {
      const unavailable = listOf(text, selectorOf)
      return unavailable && { unavailable }
    },
    form: `offerings separated by ";", each as ${selectorForm}`,
  },
  prices: {
    read: (text) => {
      const prices = listOf(text, priceOf)
      return prices && { prices }
    },
    form: `factors separated by ";", each as OFFERINGS:FACTOR with OFFERINGS as ${selectorForm}`,
  },
  image: {
    read: (image) => (image === '' ? undefined : { image }),
    form: 'any text that is not empty',
  },
  'termination-delay': {
    read: (text) => {
      const terminationDelayMs = parseDuration(text)
      return terminationDelayMs === undefined || terminationDelayMs < 0 ? undefined : { terminationDelayMs }
    },
    form: 'a duration such as 30s',
  },
  'device-delay': {
    read: (text) => {
      const deviceDelayMs = parseDuration(text)
      return deviceDelayMs === undefined || deviceDelayMs < 0 ? undefined : { deviceDelayMs }
    },
    form: 'a duration such as 30s',
  },
  'rate-limit': {
    read: (text) => (/^\d+(\.\d+)?$/.test(text) ? { rateLimit: Number(text) } : undefined),
    form: 'a number of calls a second',
  },
  'machine-resources': {
    read: (text) => {
      const shares = listOf(text, shareOf)
      return shares && { instanceShares: new Map(shares) }
    },
    form: 'shares separated by ";", each as RESOURCE:PERCENT such as memory:97%',
  },
}

/** Reads the annotations of a node class; invalid ones have no effect. */
export function failureSettings(nodeClass: KwokNodeClass | undefined): FailureReading {
  const found: Partial<FailureSettings>[] = []
  const problems: string[] = []
  for (const [key, text] of Object.entries(nodeClass?.metadata.annotations ?? {})) {
    if (!key.startsWith(simulationPrefix)) continue
    const at = `KWOKNodeClass ${nodeClass?.metadata.name}: annotation ${key}`
    const setting = ownValue(settings, key.slice(simulationPrefix.length))
    if (setting === undefined) {
      problems.push(`${at} is unknown; known are ${Object.keys(settings).join(', ')}`)
      continue
    }
    const read = setting.read(text.trim())
    if (read === undefined) problems.push(`${at}: "${text}" is invalid; use ${setting.form}`)
    else found.push(read)
  }
  return { settings: Object.assign({}, nothing, ...found), problems }
}

/** Whether one of `selectors` matches an offering. */
export function selects(selectors: readonly Selector[], offering: OfferingRef): boolean {
  return selectors.some((selector) =>
    (['instanceType', 'zone', 'capacityType'] as const).every(
      (part) => selector[part] === undefined || selector[part] === offering[part],
    ),
  )
}

/** Type, zone and capacity type of an offering. */
export function offeringRef(instanceType: string, { requirements }: Offering): OfferingRef {
  const valueOf = (wanted: string) => requirements.find(({ key }) => key === wanted)?.values?.[0] ?? ''
  return { instanceType, zone: valueOf(labels.zone), capacityType: valueOf(labels.capacityType) }
}

/** The types as such a cloud would list them. */
export function listedTypes(
  types: readonly InstanceType[],
  { prices, unavailable }: FailureSettings,
): readonly InstanceType[] {
  if (prices.length === 0 && unavailable.length === 0) return types
  return types.map((type) => ({
    ...type,
    offerings: type.offerings.map((offering): Offering => {
      const ref = offeringRef(type.name, offering)
      const factor = prices
        .filter(({ selector }) => selects([selector], ref))
        .reduce((product, price) => product * price.factor, 1)
      return {
        ...offering,
        pricePerHour: offering.pricePerHour && Math.min(mostPricePerHour, offering.pricePerHour * factor),
        available: offering.available && !selects(unavailable, ref),
      }
    }),
  }))
}

function listOf<T>(text: string, read: (part: string) => T | undefined): readonly T[] | undefined {
  const parts = text.split(';').map((part) => read(part.trim()))
  return parts.includes(undefined) ? undefined : (parts as readonly T[])
}

function shareOf(text: string): readonly [string, number] | undefined {
  const [, resource = '', percent = ''] = /^([^:\s]+):(\d+(?:\.\d+)?)%$/.exec(text) ?? []
  return resource === '' || Number(percent) > 100 ? undefined : [resource, Number(percent) / 100]
}

function priceOf(text: string): FailureSettings['prices'][number] | undefined {
  const colon = text.lastIndexOf(':')
  const selector = selectorOf(text.slice(0, Math.max(0, colon)).trim())
  const factor = text.slice(colon + 1).trim()
  return selector === undefined || !/^\d+(\.\d+)?$/.test(factor)
    ? undefined
    : { selector, factor: Number(factor) }
}

function selectorOf(text: string): Selector | undefined {
  if (text === 'all') return {}
  const selector: { -readonly [part in keyof OfferingRef]?: string } = {}
  for (const pair of text.split(',')) {
    const [name = '', value = '', ...rest] = pair.split('=').map((part) => part.trim())
    const part = ownValue(selectorParts, name)
    if (part === undefined || value === '' || rest.length > 0) return undefined
    selector[part] = value
  }
  return selector
}
