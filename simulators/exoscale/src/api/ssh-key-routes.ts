import { createHash } from 'node:crypto'
import { BodyReader } from './body-reader.ts'
import type { Call, Route } from './call.ts'
import type { CloudState, SshKey } from '../zone/cloud-state.ts'
import { succeeded } from '../instances/operation-outcome.ts'
import { invalid, notFound, refused } from './refusal.ts'
import type { RouteParts } from './route-parts.ts'
import { stableId } from '../zone/stable-id.ts'

/** register, list, get and delete of SSH keys for instances. */
export function sshKeyRoutes(parts: RouteParts): Route[] {
  const { state } = parts.context
  return [
    {
      operation: 'list-ssh-keys',
      method: 'GET',
      path: '/ssh-key',
      handle: () => ({ 'ssh-keys': [...state.sshKeys.values()] }),
    },
    {
      operation: 'register-ssh-key',
      method: 'POST',
      path: '/ssh-key',
      body: 'required',
      handle: (call) => register(parts, call),
    },
    {
      operation: 'get-ssh-key',
      method: 'GET',
      path: '/ssh-key/{name}',
      handle: (call) => sshKeyOf(state, call),
    },
    {
      operation: 'delete-ssh-key',
      method: 'DELETE',
      path: '/ssh-key/{name}',
      handle: (call) => {
        const key = sshKeyOf(state, call)
        return parts.operations.start({
          ...planOf(call, key),
          complete: () => {
            state.sshKeys.delete(key.name)
            return succeeded
          },
        })
      },
    },
  ]
}

/** The key can be used at once, as clients create an instance with it right after. */
function register({ context, operations }: RouteParts, call: Call) {
  const { sshKeys } = context.state
  const body = new BodyReader(call.body)
  const name = body.requiredString('name', { min: 1, max: 255 })
  const publicKey = body.requiredString('public-key', { min: 1, max: 16_384 })
  body.finish()
  const fingerprint = fingerprintOf(publicKey)
  if (fingerprint === undefined) throw invalid(['public-key must be a public key as OpenSSH writes it'])
  if (sshKeys.has(name)) throw refused(409, `ssh-key ${name} already exists`)
  const key = { name, fingerprint }
  sshKeys.set(name, key)
  return operations.start({
    ...planOf(call, key),
    complete: () => succeeded,
    abandon: () => sshKeys.delete(name),
  })
}

function planOf(call: Call, { name }: SshKey) {
  const path = `/ssh-key/${encodeURIComponent(name)}`
  return {
    operation: call.operation,
    effects: call.effects,
    reference: { id: stableId(`ssh-key/${name}`), command: 'get-ssh-key', path },
  }
}

function sshKeyOf(state: CloudState, call: Call): SshKey {
  const name = call.parameters['name'] ?? ''
  const key = state.sshKeys.get(name)
  if (key === undefined) throw notFound('ssh-key', name)
  return key
}

/** MD5 of the key in hexadecimal pairs; undefined for an invalid key. */
function fingerprintOf(publicKey: string): string | undefined {
  const [, type, data = ''] = /^([a-z0-9@.-]+) ([A-Za-z0-9+/]+=*)( [^\n]*)?\n?$/.exec(publicKey) ?? []
  const blob = Buffer.from(data, 'base64')
  if (type === undefined || blob.length < 4) return undefined
  if (blob.subarray(4, 4 + blob.readUInt32BE(0)).toString() !== type) return undefined
  const hex = createHash('md5').update(blob).digest('hex')
  return (hex.match(/../g) ?? []).join(':')
}
