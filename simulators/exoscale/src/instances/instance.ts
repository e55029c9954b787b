import type { KubeletHandle } from '@tenon/devcluster'
import type { InstanceType } from '../zone/catalogue.ts'

export type InstanceState =
  | 'starting'
  | 'running'
  | 'stopping'
  | 'stopped'
  | 'migrating'
  | 'error'
  | 'expunging'
  | 'destroying'
  | 'destroyed'

/** What runs in an instance. */
interface System {
  /** Incremented by every power-on and power-off; work of an earlier boot is dropped. */
  boot: number
  phase: 'off' | 'booting' | 'joining' | 'joined' | 'failed'
  /** Why the last attempt to join failed. */
  whyNotJoined: string | undefined
  kubelet: KubeletHandle | undefined
  neverBoots: boolean
  neverJoins: boolean
  neverReady: boolean
}

export interface PrivateNetworkLink {
  readonly id: string
  readonly macAddress: string
  readonly ip: string | undefined
}

/** An instance; operations change its mutable fields. */
export interface Instance {
  readonly id: string
  name: string
  readonly type: InstanceType
  readonly template: Template
  readonly diskSizeGib: number
  labels: Readonly<Record<string, string>>
  userData: string | undefined
  securityGroupIds: readonly string[]
  readonly antiAffinityGroupIds: readonly string[]
  privateNetworks: readonly PrivateNetworkLink[]
  /** Names of its SSH keys. */
  readonly sshKeys: readonly string[]
  publicIpAssignment: 'inet4' | 'dual' | 'none'
  publicIp: string | undefined
  ipv6Address: string | undefined
  readonly macAddress: string
  readonly instancePoolId: string | undefined
  readonly createdAtMs: number
  state: InstanceState
  /** Whether the instance uses capacity. */
  placed: boolean
  readonly system: System
}

export interface Template {
  readonly id: string
  readonly name: string
  /** Kubernetes version without `v`. */
  readonly version: string
  readonly variant: 'standard' | 'nvidia'
  readonly createdAtMs: number
}
