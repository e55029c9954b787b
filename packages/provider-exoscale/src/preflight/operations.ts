/**
 * The operations that the IAM role must allow, each with a call that changes nothing (docs/exoscale/iam.md).
 */
import type { CloudOperation, OperationAnswer } from '@tenon/provider'
import type { ExoscaleClient } from '../api/client.ts'
import { isApiError } from '../api/errors.ts'

type Connect = (signal: AbortSignal) => Promise<ExoscaleClient>
type Call = (client: ExoscaleClient, signal: AbortSignal) => Promise<unknown>

/** An id that does not exist: calls with it return 404 if the role allows them. */
export const nobody = '00000000-0000-4000-8000-000000000000'

/** Any version, as it does not matter whether a template exists. */
const someVersion = '1.34.0'

const securityGroups = 'node classes cannot name security groups'
const antiAffinityGroups = 'node classes cannot name anti-affinity groups'
const privateNetworks = 'node classes cannot name private networks'

const calls: readonly (readonly [name: string, call: Call, optional?: string])[] = [
  ['list-instance-types', (client, signal) => client.listInstanceTypes(signal)],
  ['get-template', (client, signal) => client.getTemplate(nobody, signal)],
  [
    'get-active-nodepool-template',
    (client, signal) => client.getActiveNodepoolTemplate(someVersion, 'standard', signal),
  ],
  ['list-security-groups', (client, signal) => client.listSecurityGroups(signal), securityGroups],
  ['get-security-group', (client, signal) => client.getSecurityGroup(nobody, signal), securityGroups],
  [
    'list-anti-affinity-groups',
    (client, signal) => client.listAntiAffinityGroups(signal),
    antiAffinityGroups,
  ],
  [
    'get-anti-affinity-group',
    (client, signal) => client.getAntiAffinityGroup(nobody, signal),
    antiAffinityGroups,
  ],
  ['list-private-networks', (client, signal) => client.listPrivateNetworks(signal), privateNetworks],
  ['get-private-network', (client, signal) => client.getPrivateNetwork(nobody, signal), privateNetworks],
  [
    'attach-instance-to-private-network',
    (client, signal) => client.attachInstanceToPrivateNetwork(nobody, nobody, signal),
    privateNetworks,
  ],
  ['list-instances', (client, signal) => client.listInstances(signal)],
  ['get-instance', (client, signal) => client.getInstance(nobody, signal)],
  // No instance can be created with a type and a template that do not exist.
  [
    'create-instance',
    (client, signal) =>
      client.createInstance(
        {
          name: 'tenon-preflight',
          'disk-size': 50,
          'instance-type': { id: nobody },
          template: { id: nobody },
        },
        signal,
      ),
  ],
  ['update-instance', (client, signal) => client.updateInstance(nobody, {}, signal)],
  ['delete-instance', (client, signal) => client.deleteInstance(nobody, signal)],
  [
    'reboot-instance',
    (client, signal) => client.rebootInstance(nobody, signal),
    'NodePools with annotation tenon.sh/repair "reboot,replace" replace unhealthy nodes without rebooting them',
  ],
  ['get-operation', (client, signal) => client.getOperation(nobody, signal)],
  [
    'get-quota',
    (client, signal) => client.getQuota('instance', signal),
    'messages about refused launches do not name the quota',
  ],
]

/** @param connect finds the endpoint of the zone; called once. */
export function operationsOf(connect: Connect): readonly CloudOperation[] {
  let connecting: Promise<ExoscaleClient> | undefined
  const connected: Connect = (signal) => (connecting ??= connect(signal))
  const zones: CloudOperation = {
    name: 'list-zones',
    attempt: (signal) => answered(() => connected(signal), signal),
  }
  const others = calls.map(
    ([name, call, optional]): CloudOperation => ({
      name,
      ...(optional !== undefined && { optional }),
      attempt: (signal) => answered(async () => call(await connected(signal), signal), signal),
    }),
  )
  return [zones, ...others]
}

/** What a call that changes nothing tells about the right to make it. Only rejects with the signal's reason. */
export async function answered(call: () => Promise<unknown>, signal: AbortSignal): Promise<OperationAnswer> {
  try {
    await call()
    return { kind: 'allowed' }
  } catch (error) {
    signal.throwIfAborted()
    const message = error instanceof Error ? error.message : String(error)
    if (isApiError(error, 'unauthorized')) return { kind: 'unauthorized', message }
    if (isApiError(error, 'forbidden')) return { kind: 'refused', message }
    // The role allows the call: the object is missing or has the wrong kind.
    if (isApiError(error, 'not-found', 'bad-request', 'conflict', 'unprocessable')) return { kind: 'allowed' }
    return { kind: 'unknown', message }
  }
}
