/** The effective settings of a node class, with the defaults of the API server. */
import { createHash } from 'node:crypto'
import { perObject } from '@tenon/runtime'
import { formerSettings, settled } from './former-settings.ts'
import { kubeletDefaults } from './kubelet-defaults.ts'
import type { ExoscaleNodeClassSpec, KubeletSpec, Reservation } from './types.ts'

export const defaultDiskSizeGib = 50

/** All kubelet fields with their values; only feature gates may be absent. */
export type KubeletSettings = Required<
  Omit<KubeletSpec, 'featureGates' | 'kubeReserved' | 'systemReserved'>
> & {
  readonly kubeReserved: Required<Reservation>
  readonly systemReserved: Required<Reservation>
  readonly featureGates: Readonly<Record<string, boolean>>
}

/** Values of `kubelet` come first, then fields of earlier releases, then defaults. */
export function kubeletSettings(spec: ExoscaleNodeClassSpec): KubeletSettings {
  const kubelet = spec.kubelet ?? {}
  const former = formerSettings(spec).kubelet
  const threshold = (name: 'imageGCHighThresholdPercent' | 'imageGCLowThresholdPercent') =>
    settled<number>(kubelet[name], former[name], kubeletDefaults[name])
  const reserved = (block: 'kubeReserved' | 'systemReserved') =>
    reservation(kubelet[block], former[block], kubeletDefaults[block])
  return {
    clusterDNS: kubelet.clusterDNS ?? kubeletDefaults.clusterDNS,
    imageGCHighThresholdPercent: threshold('imageGCHighThresholdPercent'),
    imageGCLowThresholdPercent: threshold('imageGCLowThresholdPercent'),
    imageMinimumGCAge: settled<string>(
      kubelet.imageMinimumGCAge,
      former.imageMinimumGCAge,
      kubeletDefaults.imageMinimumGCAge,
    ),
    kubeReserved: reserved('kubeReserved'),
    systemReserved: reserved('systemReserved'),
    featureGates: kubelet.featureGates ?? {},
  }
}

export function diskSizeGib(spec: ExoscaleNodeClassSpec): number {
  return spec.diskSize ?? defaultDiskSizeGib
}

/**
 * Hash of the fields whose changes need a new instance: disk, kubelet settings, labels and taints. Independent of key
 * order. Cached by object, as every check of an instance needs it and specs are immutable. Hashes of other versions are
 * not compared.
 */
export const nodeClassHash = perObject((spec: ExoscaleNodeClassSpec): string => {
  const { featureGates, ...kubelet } = kubeletSettings(spec)
  const { nodeLabels, nodeTaints } = formerSettings(spec)
  const sorted = (map: object) => Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1))
  const parts = [diskSizeGib(spec), kubelet, sorted(featureGates), sorted(nodeLabels), nodeTaints]
  const text = JSON.stringify(parts)
  return `v2-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
})

function reservation(
  given: Reservation = {},
  former: Reservation = {},
  defaults: Required<Reservation>,
): Required<Reservation> {
  const part = (name: keyof Reservation) => settled(given[name], former[name], defaults[name])
  return { cpu: part('cpu'), memory: part('memory'), ephemeralStorage: part('ephemeralStorage') }
}
