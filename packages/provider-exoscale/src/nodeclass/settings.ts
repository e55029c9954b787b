/** Effective settings of a node class: what the API server would have filled in is filled in here too. */
import { createHash } from 'node:crypto'
import { perObject } from '@tenon/runtime'
import type { ExoscaleNodeClassSpec, KubeletSpec, Reservation } from './types.ts'

export const defaultDiskSizeGib = 50

export const kubeletDefaults = {
  clusterDNS: ['10.96.0.10'],
  imageGCHighThresholdPercent: 85,
  imageGCLowThresholdPercent: 80,
  imageMinimumGCAge: '2m',
  kubeReserved: { cpu: '200m', memory: '300Mi', ephemeralStorage: '1Gi' },
  systemReserved: { cpu: '100m', memory: '100Mi', ephemeralStorage: '3Gi' },
} as const

/** Every kubelet field with its value; only feature gates may be absent. */
export type KubeletSettings = Required<
  Omit<KubeletSpec, 'featureGates' | 'kubeReserved' | 'systemReserved'>
> & {
  readonly kubeReserved: Required<Reservation>
  readonly systemReserved: Required<Reservation>
  readonly featureGates: Readonly<Record<string, boolean>>
}

export function kubeletSettings(spec: ExoscaleNodeClassSpec): KubeletSettings {
  const kubelet = spec.kubelet ?? {}
  return {
    clusterDNS: kubelet.clusterDNS ?? kubeletDefaults.clusterDNS,
    imageGCHighThresholdPercent:
      kubelet.imageGCHighThresholdPercent ?? kubeletDefaults.imageGCHighThresholdPercent,
    imageGCLowThresholdPercent:
      kubelet.imageGCLowThresholdPercent ?? kubeletDefaults.imageGCLowThresholdPercent,
    imageMinimumGCAge: kubelet.imageMinimumGCAge || kubeletDefaults.imageMinimumGCAge,
    kubeReserved: reservation(kubelet.kubeReserved, kubeletDefaults.kubeReserved),
    systemReserved: reservation(kubelet.systemReserved, kubeletDefaults.systemReserved),
    featureGates: kubelet.featureGates ?? {},
  }
}

export function diskSizeGib(spec: ExoscaleNodeClassSpec): number {
  return spec.diskSize ?? defaultDiskSizeGib
}

/**
 * Hash of what only a new machine takes up: disk and kubelet settings. Key order does not matter. Every look at a
 * machine asks for it; specs are replaced, never changed.
 */
export const nodeClassHash = perObject((spec: ExoscaleNodeClassSpec): string => {
  const { featureGates, ...kubelet } = kubeletSettings(spec)
  const gates = Object.entries(featureGates).sort(([a], [b]) => (a < b ? -1 : 1))
  const text = JSON.stringify([diskSizeGib(spec), kubelet, gates])
  return `v1-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
})

function reservation(given: Reservation | undefined, defaults: Required<Reservation>): Required<Reservation> {
  return {
    cpu: given?.cpu || defaults.cpu,
    memory: given?.memory || defaults.memory,
    ephemeralStorage: given?.ephemeralStorage || defaults.ephemeralStorage,
  }
}
