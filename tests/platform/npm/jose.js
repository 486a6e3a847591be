import { decodeProtectedHeader, jwtVerify, SignJWT } from "jose";

const key = new TextEncoder().encode("0123456789abcdef0123456789abcdef");

export const work = async () => {
  const token = await new SignJWT({ a: 1 }).setProtectedHeader({ alg: "HS256" }).setIssuedAt(1).setExpirationTime(4e9).sign(key);
  const refused = await jwtVerify(`${token.slice(0, -4)}AAAA`, key).catch((error) => error.code);
  return [token, (await jwtVerify(token, key)).payload, decodeProtectedHeader(token), refused];
};
