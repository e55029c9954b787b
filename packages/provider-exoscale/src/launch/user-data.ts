/** The user data of a new instance: TOML for the node agent, gzipped and base64-encoded. */
import { gzipSync } from 'node:zlib'
import type { Taint } from '@tenon/api'
import { kubeletLabels } from '@tenon/provider'
import { stringify, type TomlTable } from 'smol-toml'
import type { KubeletSettings } from '../nodeclass/settings.ts'

/** Maximum encoded length that the API accepts. */
const maxUserDataLength = 32_768

export interface BootSettings {
  /** URL of the API server as the node sees it. */
  readonly apiServer: string
  /** `<id>.<secret>` */
  readonly bootstrapToken: string
  /** PEM. */
  readonly certificateAuthority: string
  readonly clusterDomain: string
  readonly kubelet: KubeletSettings
  readonly taints: readonly Taint[]
  readonly labels: Readonly<Record<string, string>>
}

/** @throws RangeError if a required value is empty, or the result is too long for the API. */
export function encodedUserData(settings: BootSettings): string {
  const encoded = gzipSync(stringify(userDataTable(settings))).toString('base64')
  if (encoded.length > maxUserDataLength) {
    throw new RangeError(
      `user data is ${encoded.length} characters long, ${maxUserDataLength} are allowed; give the NodePool fewer labels or taints`,
    )
  }
  return encoded
}

/** The document before encoding. */
function userDataTable(settings: BootSettings): TomlTable {
  if (settings.bootstrapToken === '') throw new RangeError('the bootstrap token is empty')
  if (settings.certificateAuthority === '') throw new RangeError('the certificate authority is empty')
  const { kubelet } = settings
  const clusterDns = kubelet.clusterDNS.map((address) => address.trim()).filter((address) => address !== '')
  const taints = taintTable(settings.taints)
  const kubernetes: TomlTable = {
    'api-server': settings.apiServer,
    'bootstrap-token': settings.bootstrapToken,
    'cloud-provider': 'external',
    'cluster-certificate': Buffer.from(settings.certificateAuthority, 'utf8').toString('base64'),
    ...(clusterDns.length > 0 && { 'cluster-dns-ip': clusterDns }),
    ...(settings.clusterDomain !== '' && { 'cluster-domain': settings.clusterDomain }),
    'image-gc-high-threshold-percent': kubelet.imageGCHighThresholdPercent,
    'image-gc-low-threshold-percent': kubelet.imageGCLowThresholdPercent,
    'image-minimum-gc-age': kubelet.imageMinimumGCAge,
    'kube-reserved': reservationTable(kubelet.kubeReserved),
    'system-reserved': reservationTable(kubelet.systemReserved),
    ...(Object.keys(taints).length > 0 && { 'node-taints': taints }),
    'node-labels': { ...kubeletLabels(settings.labels) },
    ...(Object.keys(kubelet.featureGates).length > 0 && { 'feature-gates': { ...kubelet.featureGates } }),
  }
  return { settings: { kubernetes } }
}

function reservationTable(reservation: KubeletSettings['kubeReserved']): TomlTable {
  return {
    cpu: reservation.cpu,
    memory: reservation.memory,
    'ephemeral-storage': reservation.ephemeralStorage,
  }
}

/** The agent does not accept empty values: they become `true`. */
function taintTable(taints: readonly Taint[]): Record<string, string[]> {
  const table = new Map<string, Set<string>>()
  for (const { key, value, effect } of taints) {
    const entry = `${value || 'true'}:${effect}`
    table.set(key, (table.get(key) ?? new Set<string>()).add(entry))
  }
  return Object.fromEntries(Array.from(table, ([key, entries]) => [key, [...entries]]))
}
