/** Compares what was written with what every watcher saw. */

/** One event as a watcher delivered it. */
export interface SeenEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
}

interface Life {
  /** Resource versions from creation to the last change, in order. */
  readonly versions: string[]
  isDeleted: boolean
}

interface WrittenLife extends Life {
  deletedAtMs: number
}

/** Further violations are counted, but not kept. */
const violationLimit = 20

/** Violations of all watchers. */
export class Verdict {
  readonly messages: string[] = []
  count = 0

  add(message: string): void {
    this.count++
    if (this.messages.length < violationLimit) this.messages.push(message)
  }
}

/** What one watcher saw of one kind. */
export class Track {
  readonly name: string
  readonly lives = new Map<string, Life>()
  events = 0
  readonly #verdict: Verdict

  constructor(name: string, verdict: Verdict) {
    this.name = name
    this.#verdict = verdict
  }

  saw({ type, name, uid, resourceVersion }: SeenEvent): void {
    this.events++
    const life = this.lives.get(uid)
    const where = `${this.name}: ${type} ${name} ${uid} at ${resourceVersion}`
    if (life === undefined) {
      if (type !== 'ADDED') this.#verdict.add(`${where}: its creation was missed`)
      this.lives.set(uid, { versions: [resourceVersion], isDeleted: type === 'DELETED' })
      return
    }
    const last = life.versions.at(-1) ?? '0'
    if (type === 'ADDED') this.#verdict.add(`${where}: added before at ${life.versions[0]}`)
    if (life.isDeleted) this.#verdict.add(`${where}: deleted before`)
    if (Number(resourceVersion) <= Number(last)) this.#verdict.add(`${where}: repeated or late after ${last}`)
    if (type === 'DELETED') life.isDeleted = true
    else life.versions.push(resourceVersion)
  }
}

/** The writes of one kind and its watchers, which must have seen each write once, in order. */
export class Ledger {
  readonly #written = new Map<string, WrittenLife>()
  readonly #tracks: Track[] = []
  readonly #verdict: Verdict
  checkedObjects = 0

  constructor(verdict: Verdict) {
    this.#verdict = verdict
  }

  track(name: string): Track {
    const track = new Track(name, this.#verdict)
    this.#tracks.push(track)
    return track
  }

  wrote(uid: string, resourceVersion: string): void {
    const life = this.#written.get(uid)
    if (life === undefined)
      this.#written.set(uid, { versions: [resourceVersion], isDeleted: false, deletedAtMs: 0 })
    else life.versions.push(resourceVersion)
  }

  removed(uid: string, nowMs: number): void {
    const life = this.#written.get(uid)
    if (life === undefined) return
    life.isDeleted = true
    life.deletedAtMs = nowMs
  }

  /** Whether every watcher has seen as many objects, versions and deletions as were written. */
  isCaughtUp(): boolean {
    return this.#tracks.every((track) =>
      this.#written.entries().every(([uid, written]) => {
        const seen = track.lives.get(uid)
        return seen?.isDeleted === written.isDeleted && seen.versions.length === written.versions.length
      }),
    )
  }

  /** Checks and drops objects deleted before `beforeMs`; all objects if `isFinal`. */
  check(beforeMs: number, isFinal = false): void {
    for (const [uid, written] of this.#written) {
      const isOver = written.isDeleted && written.deletedAtMs < beforeMs
      if (!isOver && !isFinal) continue
      this.checkedObjects++
      for (const track of this.#tracks) {
        this.#compare(track, uid, written)
        track.lives.delete(uid)
      }
      this.#written.delete(uid)
    }
    if (!isFinal) return
    for (const track of this.#tracks)
      for (const uid of track.lives.keys()) this.#verdict.add(`${track.name}: ${uid} was never written`)
  }

  #compare(track: Track, uid: string, written: Life): void {
    const seen = track.lives.get(uid)
    const expected = written.versions.join(',')
    const actual = seen?.versions.join(',') ?? 'nothing'
    if (actual !== expected) this.#verdict.add(`${track.name}: ${uid}: saw ${actual}, written ${expected}`)
    if (seen !== undefined && seen.isDeleted !== written.isDeleted)
      this.#verdict.add(`${track.name}: ${uid}: deletion ${seen.isDeleted ? 'invented' : 'missed'}`)
  }
}

/**
 * A watcher that loses its connection and lists again: it may skip versions, but must never go back, and must
 * end with the server's state.
 */
export class LossyTrack {
  events = 0
  lists = 0
  readonly name: string
  readonly #last = new Map<string, number>()
  readonly #verdict: Verdict

  constructor(name: string, verdict: Verdict) {
    this.name = name
    this.#verdict = verdict
  }

  saw({ type, name, resourceVersion }: SeenEvent): void {
    this.events++
    const last = this.#last.get(name) ?? 0
    const version = Number(resourceVersion)
    // A deletion that a new list reveals has the last seen version.
    if (type === 'DELETED' ? version < last : version <= last)
      this.#verdict.add(`${this.name}: ${type} ${name} at ${resourceVersion} after ${last}`)
    this.#last.set(name, version)
  }
}
