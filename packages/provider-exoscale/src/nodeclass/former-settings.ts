/** Reads the usable values of fields of earlier releases. */
import { isRecord, labelValueProblem, qualifiedNameProblem, type Taint, wellKnownLabels } from '@tenon/api'
import { perObject } from '@tenon/runtime'
import { exoscaleLabels } from '../identifiers.ts'
import { kubeletDefaults } from './kubelet-defaults.ts'
import type { ExoscaleNodeClassSpec, KubeletSpec, Reservation } from './types.ts'

/** An ignored value. */
interface UnusableValue {
  /** Path in the node class; keys of maps are quoted in brackets. */
  readonly field: string
  readonly problem: string
}

export interface FormerSettings {
  /** Former fields outside `kubelet` that are now part of it. */
  readonly kubelet: KubeletSpec
  readonly nodeLabels: Readonly<Record<string, string>>
  readonly nodeTaints: readonly Taint[]
  readonly unusable: readonly UnusableValue[]
}

/** The schema accepts any value in these fields, so that manifests of earlier releases apply. */
export const formerSettings = perObject((spec: ExoscaleNodeClassSpec): FormerSettings => {
  const unusable: UnusableValue[] = []
  const report = (field: string, problem: string): undefined => {
    unusable.push({ field, problem })
  }
  const nodeLabels = usableLabels(spec.nodeLabels, report)
  const nodeTaints = usableTaints(spec.nodeTaints, report)
  return { kubelet: usableKubelet(spec, report), nodeLabels, nodeTaints, unusable }
})

type Report = (field: string, problem: string) => undefined

const effects: readonly Taint['effect'][] = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']
const reservedDomain = 'karpenter.sh'
const quantities = {
  cpu: /^\d+(\.\d+)?m?$/,
  memory: /^\d+(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$/,
  ephemeralStorage: /^\d+(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$/,
} as const
/** Node labels whose values the instance decides. */
const describingLabels: ReadonlySet<string> = new Set([
  ...wellKnownLabels,
  ...Object.values(exoscaleLabels),
  'kubernetes.io/hostname',
])

function usableLabels(given: unknown, report: Report): Readonly<Record<string, string>> {
  const labels = entriesOf(given).flatMap(([key, value]): readonly (readonly [string, string])[] => {
    const text = textOf(value)
    const problem =
      qualifiedNameProblem(key) ??
      reservedProblem(key) ??
      (text === undefined ? 'a label is a text' : labelValueProblem(text))
    if (text !== undefined && problem === undefined) return [[key, text]]
    report(`spec.nodeLabels["${key}"]`, problem ?? '')
    return []
  })
  return Object.fromEntries(labels)
}

function usableTaints(given: unknown, report: Report): readonly Taint[] {
  const taints = new Map<string, Taint>()
  for (const [i, each] of (Array.isArray(given) ? given : []).entries()) {
    const parts = new Map(entriesOf(each))
    const [key, value] = [textOf(parts.get('key')) ?? '', textOf(parts.get('value')) ?? '']
    const effect = effects.find((known) => known === parts.get('effect'))
    const problem =
      qualifiedNameProblem(key) ??
      (isReserved(key) ? `taints of domain ${reservedDomain} are reserved` : undefined) ??
      labelValueProblem(value) ??
      (effect === undefined ? `the effect is not one of ${effects.join(', ')}` : undefined)
    if (effect === undefined || problem !== undefined) {
      report(`spec.nodeTaints[${i}]`, problem ?? '')
      continue
    }
    const identity = `${key}:${effect}`
    if (!taints.has(identity)) taints.set(identity, { key, ...(value !== '' && { value }), effect })
  }
  return [...taints.values()]
}

function usableKubelet(spec: ExoscaleNodeClassSpec, report: Report): KubeletSpec {
  const age = textOf(spec.imageMinimumGCAge)
  const isAge = age !== undefined && /^\d+[smh]$/.test(age)
  if (isPresent(spec.imageMinimumGCAge) && !isAge)
    report('spec.imageMinimumGCAge', 'it is not a number and s, m or h')
  const kubeReserved = usableReservation('kubeReserved', spec.kubeReserved, report)
  const systemReserved = usableReservation('systemReserved', spec.systemReserved, report)
  return {
    ...usableThresholds(spec, report),
    ...(isAge && { imageMinimumGCAge: age }),
    ...(kubeReserved && { kubeReserved }),
    ...(systemReserved && { systemReserved }),
  }
}

type Thresholds = Pick<KubeletSpec, 'imageGCHighThresholdPercent' | 'imageGCLowThresholdPercent'>

/** A kubelet does not start unless the low threshold is below the high one. */
function usableThresholds(spec: ExoscaleNodeClassSpec, report: Report): Thresholds {
  const [high, low] = (['imageGCHighThresholdPercent', 'imageGCLowThresholdPercent'] as const).map((name) => {
    if (!isPresent(spec[name])) return undefined
    const text = textOf(spec[name]) ?? ''
    const percent = Number(text)
    if (/^\d+$/.test(text) && percent <= 100) return percent
    return report(`spec.${name}`, 'it is not an integer from 0 to 100')
  })
  if (high === undefined && low === undefined) return {}
  const { kubelet = {} } = spec
  const effectiveHigh = settingOf(kubelet.imageGCHighThresholdPercent, high, 'imageGCHighThresholdPercent')
  const effectiveLow = settingOf(kubelet.imageGCLowThresholdPercent, low, 'imageGCLowThresholdPercent')
  if (effectiveLow >= effectiveHigh) {
    const problem = `the low threshold would be ${effectiveLow} and the high one ${effectiveHigh}`
    for (const [name, value] of [
      ['High', high],
      ['Low', low],
    ] as const)
      if (value !== undefined) report(`spec.imageGC${name}ThresholdPercent`, problem)
    return {}
  }
  return {
    ...(high !== undefined && { imageGCHighThresholdPercent: high }),
    ...(low !== undefined && { imageGCLowThresholdPercent: low }),
  }
}

function settingOf(own: number | undefined, former: number | undefined, name: keyof Thresholds): number {
  return settled(own, former, kubeletDefaults[name])
}

function usableReservation(
  block: 'kubeReserved' | 'systemReserved',
  given: unknown,
  report: Report,
): Reservation | undefined {
  const parts = entriesOf(given).flatMap(([name, value]): readonly (readonly [string, string])[] => {
    const text = textOf(value)
    const field = `spec.${block}.${name}`
    if (name !== 'cpu' && name !== 'memory' && name !== 'ephemeralStorage') {
      report(field, 'known are cpu, memory and ephemeralStorage')
      return []
    }
    if (text !== undefined && quantities[name].test(text)) return [[name, text]]
    report(field, 'it is not a quantity')
    return []
  })
  return parts.length === 0 ? undefined : Object.fromEntries(parts)
}

/**
 * The effective value. The API server sets the defaults of `kubelet`, so a default value there counts as absent.
 */
export function settled<T extends string | number>(own: T | undefined, former: T | undefined, usual: T): T {
  const isSilent = own === undefined || own === '' || own === usual
  return isSilent ? (former ?? usual) : own
}

/** Unquoted numbers and booleans in YAML are converted to text. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

function entriesOf(value: unknown): readonly (readonly [string, unknown])[] {
  return isRecord(value) ? Object.entries(value) : []
}

const isPresent = (value: unknown): boolean => value !== undefined && value !== null

function reservedProblem(key: string): string | undefined {
  if (isReserved(key)) return `labels of domain ${reservedDomain} are reserved`
  return describingLabels.has(key) ? 'it describes the instance and cannot be set' : undefined
}

function isReserved(key: string): boolean {
  const domain = key.slice(0, Math.max(0, key.indexOf('/')))
  return domain === reservedDomain || domain.endsWith(`.${reservedDomain}`)
}
