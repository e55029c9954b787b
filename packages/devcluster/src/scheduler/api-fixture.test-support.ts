import { generateKeyPairSync } from 'node:crypto'
import { type Clock, Secret, SeededRandom, silentLogger } from '@tenon/runtime'
import { createApiServer } from '../apiserver/index.ts'
import type { LocalApi } from '../contract.ts'

const keyPair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const signingKey = new Secret(keyPair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())

/** A real API server in which nobody else writes. */
export function createTestApi(clock: Clock): LocalApi {
  const random = new SeededRandom(7)
  const adminToken = new Secret('admin')
  return createApiServer({ clock, random, logger: silentLogger, adminToken, signingKey }).local
}
