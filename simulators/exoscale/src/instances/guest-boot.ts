import { formatResource, ownValue, parseResource, sameTaint, setOwn, type Taint } from '@tenon/api'
import type { JoinCredentials, KubeletSpec } from '@tenon/devcluster'
import { gpuDevices } from '@tenon/provider-exoscale'
import type { Instance } from './instance.ts'
import type { ExoscaleSettings } from '../settings.ts'
import { gunzipSync } from 'node:zlib'
import { parse } from 'smol-toml'

export type GuestConfiguration =
  | { readonly kind: 'ready'; readonly credentials: JoinCredentials; readonly kubelet: KubeletSpec }
  | { readonly kind: 'broken'; readonly reason: string }

const reservedByDefault = {
  'kube-reserved': { cpu: '200m', memory: '300Mi', 'ephemeral-storage': '1Gi' },
  'system-reserved': { cpu: '100m', memory: '100Mi', 'ephemeral-storage': '3Gi' },
} as const

const effects: ReadonlySet<string> = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])

const permittedKubernetesLabels = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
])

/** Reads an instance's user data and derives its kubelet's configuration. */
export function configureGuest(instance: Instance, settings: ExoscaleSettings): GuestConfiguration {
  const decoded = decodeUserData(instance.userData)
  if (decoded.kind === 'unreadable') return { kind: 'broken', reason: decoded.reason }
  try {
    const { kubernetes } = decoded
    const credentials = credentialsOf(kubernetes)
    checkKubelet(instance, kubernetes)
    return { kind: 'ready', credentials, kubelet: kubeletOf(instance, kubernetes, settings) }
  } catch (error) {
    if (!(error instanceof Misconfiguration)) throw error
    return { kind: 'broken', reason: error.message }
  }
}

class Misconfiguration extends Error {}

function credentialsOf(kubernetes: KubernetesSettings): JoinCredentials {
  const certificate = requiredText(kubernetes, 'cluster-certificate')
  const certificateAuthority = Buffer.from(certificate, 'base64').toString()
  if (!certificateAuthority.includes('BEGIN CERTIFICATE')) {
    throw new Misconfiguration('cluster-certificate is not the base64 of a PEM certificate')
  }
  return {
    endpoint: requiredText(kubernetes, 'api-server'),
    bootstrapToken: requiredText(kubernetes, 'bootstrap-token'),
    certificateAuthority,
  }
}

function checkKubelet(instance: Instance, kubernetes: KubernetesSettings): void {
  if (kubernetes['cloud-provider'] !== 'external')
    throw new Misconfiguration('cloud-provider is not external')
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(instance.name)) {
    throw new Misconfiguration(`the instance name ${instance.name} is not a host name`)
  }
  const high = kubernetes['image-gc-high-threshold-percent'] ?? 85
  const low = kubernetes['image-gc-low-threshold-percent'] ?? 80
  if (!isPercent(high) || !isPercent(low) || low >= high) {
    throw new Misconfiguration('image-gc-low-threshold-percent is not below image-gc-high-threshold-percent')
  }
  const age = kubernetes['image-minimum-gc-age']
  if (age !== undefined && !/^[0-9]+(s|m|h)$/.test(String(age))) {
    throw new Misconfiguration('image-minimum-gc-age is not a duration')
  }
}

function kubeletOf(
  instance: Instance,
  kubernetes: KubernetesSettings,
  settings: ExoscaleSettings,
): KubeletSpec {
  const capacity = capacityOf(instance, settings)
  const allocatable: Record<string, string> = { ...capacity }
  for (const name of ['cpu', 'memory', 'ephemeral-storage'] as const) {
    const left = parseResource(name, capacity[name] ?? '0') - reserved(kubernetes, name)
    if (left <= 0) throw new Misconfiguration(`the reservations leave no ${name}`)
    allocatable[name] = formatResource(name, left)
  }
  return {
    nodeName: instance.name,
    providerId: `exoscale://${instance.id}`,
    systemUuid: instance.id,
    kubeletVersion: `v${instance.template.version}`,
    labels: {
      ...labelsOf(kubernetes),
      'kubernetes.io/hostname': instance.name,
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
    },
    taints: [
      ...taintsOf(kubernetes),
      { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' },
    ],
    capacity,
    allocatable,
    addresses: addressesOf(instance),
    ...(instance.system.neverReady && { neverReady: true }),
    ...(settings.gpuDriver && seesGpus(instance, settings) && { devices: gpuDevices(instance.type) }),
  }
}

/** Node addresses of an instance; internal and external IP are both the public one. */
export function addressesOf(instance: Instance): { readonly type: string; readonly address: string }[] {
  const addresses = [{ type: 'Hostname', address: instance.name }]
  if (instance.publicIp === undefined) return addresses
  addresses.push({ type: 'ExternalIP', address: instance.publicIp })
  addresses.push({ type: 'InternalIP', address: instance.publicIp })
  return addresses
}

function capacityOf(instance: Instance, settings: ExoscaleSettings): Record<string, string> {
  const { type } = instance
  const kibibytes = Math.floor((type.memoryBytes / 1024) * (settings.memoryCapacityPercent / 100))
  return {
    cpu: String(type.cpus),
    memory: `${kibibytes}Ki`,
    'ephemeral-storage': String(instance.diskSizeGib * 2 ** 30),
    pods: '110',
    ...(type.gpus > 0 && seesGpus(instance, settings) ? { 'nvidia.com/gpu': String(type.gpus) } : {}),
  }
}

function seesGpus({ template }: Instance, settings: ExoscaleSettings): boolean {
  return template.variant === 'nvidia' || !settings.gpuNeedsNvidiaTemplate
}

function reserved(kubernetes: KubernetesSettings, name: 'cpu' | 'memory' | 'ephemeral-storage'): number {
  let amount = 0
  for (const block of ['kube-reserved', 'system-reserved'] as const) {
    const given = (kubernetes[block] ?? {}) as Readonly<Record<string, unknown>>
    const quantity = String(given[name] ?? reservedByDefault[block][name])
    try {
      amount += parseResource(name, quantity)
    } catch {
      throw new Misconfiguration(`${block}.${name} is not a quantity: ${quantity}`)
    }
  }
  return amount
}

/** Like kubelet, refuses unknown labels of the Kubernetes domains. */
function labelsOf(kubernetes: KubernetesSettings): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const [key, value] of Object.entries(kubernetes['node-labels'] ?? {})) {
    const domain = key.includes('/') ? (key.split('/')[0] ?? '') : ''
    const isKubernetes = /(^|\.)(kubernetes\.io|k8s\.io)$/.test(domain)
    const isOpen = /(^|\.)(node|kubelet)\.kubernetes\.io$/.test(domain)
    if (isKubernetes && !isOpen && !permittedKubernetesLabels.has(key)) {
      throw new Misconfiguration(`kubelet may not set the label ${key}`)
    }
    setOwn(labels, key, String(value))
  }
  return labels
}

/** Taints of the table `node-taints`: key → list of `value:Effect`. */
function taintsOf(kubernetes: KubernetesSettings): Taint[] {
  const taints: Taint[] = []
  for (const [key, entries] of Object.entries(kubernetes['node-taints'] ?? {})) {
    for (const entry of Array.isArray(entries) ? (entries as unknown[]) : [entries]) {
      const text = String(entry)
      const colon = text.lastIndexOf(':')
      const effect = text.slice(colon + 1)
      if (colon === -1 || !effects.has(effect)) {
        throw new Misconfiguration(`node-taints: ${key} has the entry ${text}, not value:Effect`)
      }
      const taint: Taint = { key, value: text.slice(0, colon), effect: effect as Taint['effect'] }
      const same = taints.find((known) => sameTaint(known, taint))
      if (same === undefined) taints.push(taint)
      else if (same.value !== taint.value) {
        throw new Misconfiguration(`node-taints: ${key} has two values for ${effect}`)
      }
    }
  }
  return taints
}

function requiredText(kubernetes: KubernetesSettings, key: string): string {
  const value = ownValue(kubernetes, key)
  if (typeof value === 'string' && value !== '') return value
  throw new Misconfiguration(`user data lacks ${key}`)
}

function isPercent(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= 100
}

/** What the guest agent reads from `settings.kubernetes`, by the keys of the document. */
type KubernetesSettings = Readonly<Record<string, unknown>>

type UserData =
  | { readonly kind: 'settings'; readonly kubernetes: KubernetesSettings }
  | { readonly kind: 'unreadable'; readonly reason: string }

/** Larger documents are refused, to bound memory. */
const longestDocument = 1 << 20

/** Decodes user data as the guest agent does: base64 of gzip, base64 of text, or text. */
function decodeUserData(text: string | undefined): UserData {
  if (text === undefined) return { kind: 'unreadable', reason: 'no user data' }
  try {
    const document = parse(documentOf(text)) as { settings?: { kubernetes?: unknown } }
    const kubernetes = document.settings?.kubernetes
    if (typeof kubernetes !== 'object' || kubernetes === null) {
      return { kind: 'unreadable', reason: 'user data has no table settings.kubernetes' }
    }
    return { kind: 'settings', kubernetes: kubernetes as KubernetesSettings }
  } catch (error) {
    const cause = error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'unknown error'
    return { kind: 'unreadable', reason: `user data cannot be read: ${cause}` }
  }
}

function documentOf(text: string): string {
  const compact = text.trim()
  if (!/^[A-Za-z0-9+/\r\n]+={0,2}$/.test(compact)) return text
  const bytes = Buffer.from(compact, 'base64')
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b
  const plain = isGzip ? gunzipSync(bytes, { maxOutputLength: longestDocument }) : bytes
  return new TextDecoder('utf-8', { fatal: true }).decode(plain)
}
