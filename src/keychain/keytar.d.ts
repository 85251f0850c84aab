/**
 * Functions of keytar that this module uses. The package is optional, so type checking must not require its types.
 */
declare module 'keytar' {
  export interface Keytar {
    getPassword(service: string, account: string): Promise<string | null>
    setPassword(service: string, account: string, password: string): Promise<void>
    deletePassword(service: string, account: string): Promise<boolean>
    findCredentials(service: string): Promise<{ account: string; password: string }[]>
  }
  const keytar: Keytar
  export default keytar
}
