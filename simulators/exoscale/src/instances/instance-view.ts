import { perObject, rfc3339 } from '@tenon/runtime'
import type { Instance } from './instance.ts'

/** It never changes, and every list contains it. */
const createdAt = perObject(({ createdAtMs }: Instance) => rfc3339(createdAtMs))

/** An instance as in lists: without anti-affinity groups, disk size and user data. */
export function listedInstance(instance: Instance): Record<string, unknown> {
  return {
    id: instance.id,
    name: instance.name,
    state: instance.state,
    labels: instance.labels,
    'instance-type': { id: instance.type.id },
    template: { id: instance.template.id },
    'security-groups': instance.securityGroupIds.map((id) => ({ id })),
    'private-networks': instance.privateNetworks.map((link) => ({
      id: link.id,
      'mac-address': link.macAddress,
    })),
    'public-ip-assignment': instance.publicIpAssignment,
    'mac-address': instance.macAddress,
    'ssh-keys': instance.sshKeys.map((name) => ({ name })),
    'created-at': createdAt(instance),
    ...(instance.sshKeys[0] === undefined ? {} : { 'ssh-key': { name: instance.sshKeys[0] } }),
    ...(instance.publicIp === undefined ? {} : { 'public-ip': instance.publicIp }),
    ...(instance.ipv6Address === undefined ? {} : { 'ipv6-address': instance.ipv6Address }),
    ...(instance.instancePoolId === undefined
      ? {}
      : { manager: { id: instance.instancePoolId, type: 'instance-pool' } }),
  }
}

/** An instance as returned by its own path. */
export function detailedInstance(instance: Instance): Record<string, unknown> {
  return {
    ...listedInstance(instance),
    'anti-affinity-groups': instance.antiAffinityGroupIds.map((id) => ({ id })),
    'disk-size': instance.diskSizeGib,
    'elastic-ips': [],
    snapshots: [],
    'disk-encrypted': true,
    'secureboot-enabled': false,
    'tpm-enabled': false,
    ...(instance.userData === undefined ? {} : { 'user-data': instance.userData }),
  }
}
